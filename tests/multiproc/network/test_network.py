#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs over networks, and strangers at their ports: test_network.py TUTTIRUN JOB SLOW_RESOLVER GROUP [WORD...]; a group is hosts or ports."""

import importlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launcher"))
import harness  # noqa: E402


def main():
    program, job, resolver = (os.path.abspath(path) for path in sys.argv[1:4])
    group, words = sys.argv[4], sys.argv[5:]
    module = importlib.import_module(f"{group}_cases")
    module.JOB, module.SLOW_RESOLVER = job, resolver
    return harness.run_cases(program, [(case.__name__, case) for case in module.CASES], words)


if __name__ == "__main__":
    sys.exit(main())
