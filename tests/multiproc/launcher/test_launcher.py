#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of tuttirun with real processes: test_launcher.py TUTTIRUN GROUP [WORD...]; a group is local, output or remote."""

import importlib
import os
import sys

import harness


def main():
    program, group, words = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    cases = importlib.import_module(f"{group}_cases").CASES
    return harness.run_cases(program, [(case.__name__, case) for case in cases], words)


if __name__ == "__main__":
    sys.exit(main())
