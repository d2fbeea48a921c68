#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""The tree keeps its own rules: who may include whom, lengths, banned calls, licence lines. Rules: rules.py.

usage: test_tidy.py SOURCE_ROOT [--shell]

--shell runs shellcheck over the shell scripts instead (77 if it is not installed).
"""
import ast
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

import rules

CPP = {".cpp", ".hpp", ".h", ".c", ".def"}
TEXT = CPP | {".py", ".sh", ".md", ".build", ".txt", ".wrap", ".map", ".in", ""}
NO_LICENCE_LINES = {".md", ".map"}
NOT_OURS = {"LICENSE"}
RULES_THEMSELVES = {"tests/tidy/rules.py", "tests/tidy/test_tidy.py"}


def files_of(root):
    """Tracked files if this is a clone, else all but builds and hidden folders."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        names = [name for name in names if not re.match(r"(\.git|build[^/]*|subprojects/[^/]+)/", name)]
    paths = sorted(set(names))
    return [path for path in paths if (root / path).is_file() and pathlib.Path(path).suffix in TEXT and path not in NOT_OURS]


def code_only(text):
    """Comments, strings and character literals blanked, lines kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, blank, text, flags=re.S)


def cpp_functions(code):
    """(name, first line, lines) of each function definition of code without comments and strings."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: re.sub(r"[^\n]", " ", match.group(0)), code, flags=re.M)
    stack, start, found = [], 0, []
    for match in re.finditer(r"[{};]", code):
        at, character = match.start(), match.group(0)
        head = code[start:at].strip()
        if character == "{":
            inside_function = any(kind != "scope" for kind, _, _ in stack)
            container = re.search(r"\b(namespace|class|struct|union|enum|extern)\b[^()=]*$", head)
            function = re.search(r"([~\w]+|operator\S+)\s*\(", head) if not head.endswith("=") else None
            if not inside_function and container:
                stack.append(("scope", "", at))
            elif not inside_function and function:
                stack.append(("function", function.group(1), start + len(code[start:at]) - len(code[start:at].lstrip())))
            else:
                stack.append(("block", "", at))
        elif character == "}" and stack:
            kind, name, begin = stack.pop()
            if kind == "function":
                first = code.count("\n", 0, begin) + 1
                found.append((name, first, code.count("\n", begin, at) + 1))
        start = match.end()
    return found


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def longest_folder(path, folders):
    return max((folder for folder in folders if path.startswith(folder + "/")), key=len, default=None)


def room_of(path):
    """lib/engine, transports/tcp, tools/tuttirun; algorithms, bench and tests are one room each."""
    parts = path.split("/")
    return "/".join(parts[:2] if parts[0] in {"lib", "transports", "tools"} else parts[:1])


def include_problems(path, text):
    folder = longest_folder(path, rules.MAY_INCLUDE)
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not found:
            continue
        header = found.group(2)
        first = header.split("/")[0]
        for pattern, where, excused, why in rules.BANNED_INCLUDES:
            if path.startswith(where) and path not in excused and re.search(pattern, line):
                yield f"{path}:{number}: {header}: {why}"
        if folder is None:
            continue
        if ".." in header and room_of(posixpath.normpath(posixpath.join(posixpath.dirname(path), header))) != room_of(path):
            yield f"{path}:{number}: {header}: not out of the own folder by '..'"
        own = path.startswith(f"lib/{first}/")
        if first in rules.LIBRARY | {"tutti"} and "/" in header and not own and first not in rules.MAY_INCLUDE[folder]:
            yield f"{path}:{number}: {folder} may not see {header}"


def call_problems(path, code):
    for name, pattern, where, excused, why in rules.BANNED:
        if not path.startswith(where) or path in excused:
            continue
        for match in re.finditer(pattern, code):
            yield f"{path}:{code.count(chr(10), 0, match.start()) + 1}: {name} ({match.group(0).strip(' (')}): {why}"


def length_problems(path, text, functions):
    lines = text.count("\n")
    if lines > rules.MAX_FILE_LINES and path not in rules.LONG_FILES_EXCUSED:
        yield f"{path}: {lines} lines, more than {rules.MAX_FILE_LINES}"
    for name, first, length in functions:
        if length > rules.MAX_FUNCTION_LINES and (path, name) not in rules.LONG_FUNCTIONS_EXCUSED:
            yield f"{path}:{first}: {name} has {length} lines, more than {rules.MAX_FUNCTION_LINES}"


def word_problems(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, why in rules.BANNED_WORDS:
            if re.search(pattern, line):
                yield f"{path}:{number}: '{re.search(pattern, line).group(0)}': {why}"


def problems_of(path, text):
    suffix = pathlib.Path(path).suffix
    if path not in RULES_THEMSELVES:
        yield from word_problems(path, text)
    head = "\n".join(text.splitlines()[:4])
    if suffix not in NO_LICENCE_LINES and not ("SPDX-FileCopyrightText: " in head and "SPDX-License-Identifier: " in head):
        yield f"{path}: the two SPDX lines are missing"
    if suffix in CPP:
        code = code_only(text)
        yield from include_problems(path, text)
        yield from call_problems(path, code)
        yield from length_problems(path, text, cpp_functions(code))
    elif suffix == ".py":
        yield from length_problems(path, text, python_functions(text))


SAMPLES = [
    ("lib/schedule/a.cpp", '#include "engine/x.hpp"\n', "may not see"),
    ("algorithms/a/a.cpp", '#include "transport/x.hpp"\n', "may not see"),
    ("transports/tcp/a.cpp", '#include "base/x.hpp"\n', "may not see"),
    ("transports/tcp/a.cpp", '#include "../shm/x.hpp"\n', "'..'"),
    ("lib/base/a.cpp", "#include <spdlog/spdlog.h>\n", "one file"),
    ("lib/engine/a.cpp", "void f() { x = getenv(name); }\n", "environment"),
    ("lib/engine/a.cpp", "void f() { std::printf(name); }\n", "print"),
    ("lib/engine/a.cpp", "int f() { return system(name); }\n", "shell"),
    ("tests/a.cpp", "void f() { std::atomic_thread_fence(x); }\n", "fence"),
    ("transports/a.cpp", "void f() {\n  signal(SIGINT, g);\n}\n", "signals"),
    ("lib/base/a.cpp", "void f() {\n" + "  g();\n" * 70 + "}\n", "f has 72 lines"),
    ("lib/base/a.hpp", "namespace n {\nclass C {\n  int f(int a) const {\n" + "  g();\n" * 70 + "  }\n};\n}\n", "f has 72 lines"),
    ("lib/base/a.cpp", "\n" * 601, "lines, more than 600"),
    ("docs/a.md", "see /work" + "/x\n", "one machine"),
    ("tools/a.py", "def f():\n" + "    g()\n" * 70, "f has 71 lines"),
]
CLEAN = [
    ("lib/engine/a.cpp", 'void f() { log("printf(x) getenv"); }  // system(x)\n'),
    ("lib/engine/a.cpp", "void f() { lane.signal(x); Outcome::system(1); }\nOutcome system(int x);\n"),
    ("lib/base/a.cpp", "const int table[] = {\n" + "  1,\n" * 90 + "};\nstruct S {\n" + "  int a;\n" * 90 + "};\n"),
    ("lib/base/a.cpp", "const auto n = 1'000'000;\nvoid f() { g('{'); }\nvoid h() {}\n"),
]
LICENCE = "// SPDX-FileCopyrightText: x\n// SPDX-License-Identifier: x\n"


def check_the_checker():
    """Each rule finds a sample that breaks it, and leaves clean ones alone."""
    for path, text, expected in SAMPLES:
        found = list(problems_of(path, LICENCE.replace("//", "#" if path.endswith("py") else "//") + text))
        if not any(expected in problem for problem in found):
            yield f"the rules miss '{expected}' in a sample: {found}"
    for path, text in CLEAN:
        for problem in problems_of(path, LICENCE + text):
            yield f"the rules blame a clean sample: {problem}"
    if not any("SPDX" in problem for problem in problems_of("lib/base/a.cpp", "int a;\n")):
        yield "the rules miss the SPDX lines"


def run_shellcheck(root):
    if shutil.which("shellcheck") is None:
        print("shellcheck is not installed: skipped")
        return 77
    scripts = [path for path in files_of(root) if path.endswith(".sh") or
               (pathlib.Path(path).suffix == "" and re.match(r"#!.*\b(ba)?sh\b", (root / path).read_text(encoding="utf-8")))]
    print("shellcheck:", " ".join(scripts))
    return subprocess.run(["shellcheck", "-x"] + scripts, cwd=root, check=False).returncode if scripts else 1


def main():
    root = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["--shell"]:
        return run_shellcheck(root)
    problems = list(check_the_checker())
    paths = files_of(root)
    for path in paths:
        problems += problems_of(path, (root / path).read_text(encoding="utf-8"))
    for problem in problems:
        print(problem)
    print(f"{len(paths)} files, {len(problems)} problems")
    return 1 if problems or len(paths) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
