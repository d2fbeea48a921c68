#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Whole jobs with real processes: test_jobs.py TUTTIRUN JOB GROUP [WORD...]; a group is start, failure, hygiene, mismatch,
message, speed or many."""

import importlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launcher"))
import harness  # noqa: E402


def main():
    program, job, group, words = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3], sys.argv[4:]
    module = importlib.import_module(f"{group}_cases")
    module.JOB = job
    return harness.run_cases(program, [(case.__name__, case) for case in module.CASES], words)


if __name__ == "__main__":
    sys.exit(main())
