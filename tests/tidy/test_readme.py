#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""The README's program is examples/hello/hello.c, and its links lead to files.

usage: test_readme.py SOURCE_ROOT
"""
import pathlib
import re
import sys


def main():
    root = pathlib.Path(sys.argv[1])
    readme = (root / "README.md").read_text(encoding="utf-8")
    problems = []
    blocks = re.findall(r"^```c\n(.*?)^```$", readme, flags=re.M | re.S)
    program = (root / "examples" / "hello" / "hello.c").read_text(encoding="utf-8")
    body = re.sub(r"\A(/\*.*?\*/\s*)+", "", program, flags=re.S)  # licence and title
    if [block.strip() for block in blocks] != [body.strip()]:
        problems.append("the program in README.md is not that of examples/hello/hello.c")
    pages = [root / "README.md"] + sorted(root.glob("docs/**/*.md"))
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                problems.append(f"{page.relative_to(root)}: no file {target}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
