#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, twice included, without a warning.

usage: test_headers.py gcc|clang SOURCE_ROOT

The installed headers (lib/include/tutti) as C99 to C2x and C++11 to C++2b, pedantically; those between the parts of the
library as C++20 (gcc) or C++2b (clang). Exit status 77 if the compiler is not installed.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}
C_STANDARDS = ["c99", "c11", "c17", "c2x"]
CPP_STANDARDS = ["c++11", "c++14", "c++17", "c++20", "c++2b"]
INTERNAL_STANDARD = {"gcc": "c++20", "clang": "c++2b"}  # one each, for time
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow", "-Wundef", "-fsyntax-only"]


def compile_one(command, header):
    text = f'#include "{header}"\n#include "{header}"\nint unused_;\n'
    done = subprocess.run(command + ["-"], input=text, capture_output=True, text=True, check=False)
    return done.returncode, " ".join(command) + f" <{header}>", done.stderr


def jobs(compiler, root):
    c, cpp = COMPILERS[compiler]
    public = root / "lib" / "include"
    for header in sorted(public.glob("tutti/*.h")):
        name = str(header.relative_to(public))
        for standard in C_STANDARDS:
            yield [c, "-x", "c", f"-std={standard}", "-Wstrict-prototypes", f"-I{public}"] + STRICT, name
        for standard in CPP_STANDARDS:
            yield [cpp, "-x", "c++", f"-std={standard}", f"-I{public}"] + STRICT, name
    includes = [f"-I{folder}" for folder in sorted(root.glob("lib/*/include"))]
    for folder in sorted(root.glob("lib/*/include")):
        for header in sorted(folder.rglob("*.hpp")):
            yield [cpp, "-x", "c++", f"-std={INTERNAL_STANDARD[compiler]}", f"-I{public}", "-Wall", "-Wextra", "-Werror",
                   "-fsyntax-only"] + includes, str(header.relative_to(folder))


def main():
    compiler, root = sys.argv[1], pathlib.Path(sys.argv[2])
    for program in COMPILERS[compiler]:
        if shutil.which(program) is None:
            print(f"{program} is not installed: skipped")
            return 77
    work = list(jobs(compiler, root))
    if len([name for _, name in work if name == "tutti/tutti.h"]) != len(C_STANDARDS) + len(CPP_STANDARDS):
        sys.exit(f"lib/include/tutti/tutti.h not found below {root}")
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for status, what, words in pool.map(lambda job: compile_one(*job), work):
            if status != 0:
                failures += 1
                print(f"FAILED: {what}\n{words}")
    print(f"{len(work)} compilations, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
