#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Instructions of a small call once its plan is known, counted by callgrind: test_instructions.py CALLS. One rank, so that no wait
makes the count uncertain. Exit status 77: valgrind is not installed."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# An allreduce of 8 bytes, optimised for release by gcc 12 on x86-64. Whoever saves some lowers it.
BUDGET = 1079
TOLERANCE = 1.03
# Start and wait of a persistent call, as a share of the blocking one.
PERSISTENT_SHARE = 0.70
# A call of another length than the last, likewise: a program that changes them does not pay for planning.
CHANGING_SHARE = 1.10
FEW, MANY = 1000, 3000


def counted(program, kind, calls):
    env = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
    env["TUTTI_CONTROL_THREAD"] = "off"
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, kind, str(calls)],
            env=env, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r"Collected : ([0-9]+)", result.stderr)
    if result.returncode != 0 or not found:
        sys.exit(f"{kind}, {calls} calls: exit status {result.returncode}\n{result.stderr}")
    return int(found.group(1))


def instructions(program, kind):
    """Of one call: what starting and ending a job takes is in both counts."""
    return (counted(program, kind, MANY) - counted(program, kind, FEW)) / (MANY - FEW)


def main():
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return SKIPPED
    blocking, changing, persistent = (instructions(sys.argv[1], kind) for kind in ("blocking", "changing", "persistent"))
    print(f"blocking {blocking:.0f}, budget {BUDGET}; changing {changing:.0f}, {100 * changing / blocking:.1f} %; "
          f"persistent {persistent:.0f}, {100 * persistent / blocking:.1f} %")
    if blocking > BUDGET * TOLERANCE:
        sys.exit(f"an allreduce of 8 bytes takes {blocking:.0f} instructions, {100 * (blocking / BUDGET - 1):.1f} % over its budget")
    if persistent > PERSISTENT_SHARE * blocking:
        sys.exit(f"start and wait take {100 * persistent / blocking:.1f} % of the blocking call, of {100 * PERSISTENT_SHARE:.0f} %")
    if changing > CHANGING_SHARE * blocking:
        sys.exit(f"with another length it takes {100 * changing / blocking:.1f} %, of {100 * CHANGING_SHARE:.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
