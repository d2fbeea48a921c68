#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Prints what the tests of some suites need built, as ninja's targets, one a line.

usage: test_targets.py BUILD_DIR SUITE...

`meson test` alone builds the whole tree as soon as one of the tests is a script. Exit status 2, with the suites that there
are, if one is unknown.
"""
import json
import os
import subprocess
import sys


def introspect(build, what):
    done = subprocess.run(["meson", "introspect", build, what], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main(build, *suites):
    tests = [(test, {suite.split(":")[-1] for suite in test["suite"]}) for test in introspect(build, "--tests")]
    known = set().union(*(names for _, names in tests)) if tests else set()
    for suite in suites:
        if suite not in known:
            print(f"no suite '{suite}'; there are: {' '.join(sorted(known))}", file=sys.stderr)
            return 2
    files = {target["id"]: target["filename"] for target in introspect(build, "--targets")}
    needed = {file for test, names in tests if names & set(suites) for part in test["depends"] for file in files.get(part, [])}
    for file in sorted(needed):
        print(os.path.relpath(file, os.path.realpath(build)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
