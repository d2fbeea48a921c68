#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the results of `meson test` runs.

usage: test_totals.py [--skips FILE] [LABEL=]TESTLOG.json...

Names what failed and what was skipped; the last line is "N passed, N failed, N skipped". Exit status 1 if anything failed, if
a log is missing or holds no test, or if a skip has no line "test-name: reason" in FILE.
"""
import json
import sys

PASSED = {"OK", "EXPECTEDFAIL"}


def read_skips(path):
    reasons = {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, colon, reason = line.partition(": ")
            if not colon or not reason.strip():
                sys.exit(f"{path}:{number}: not 'test-name: reason': {line}")
            reasons[name] = reason.strip()
    return reasons


def read_log(argument):
    label, equals, path = argument.rpartition("=")
    results = []
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                name = entry["name"].split(" / ")[-1]
                results.append((f"{label}: " if equals else "", name, entry["result"]))
    except (OSError, ValueError, KeyError) as error:
        return [], f"no results in {argument}: {error}"
    return results, None if results else f"no test ran: {argument}"


def main(arguments):
    skips = None
    if arguments[:1] == ["--skips"]:
        skips = read_skips(arguments[1])
        arguments = arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    passed, failed, skipped, unexplained = 0, [], [], []
    for argument in arguments:
        results, problem = read_log(argument)
        if problem:
            failed.append(problem)
        for label, name, result in results:
            if result in PASSED:
                passed += 1
            elif result == "SKIP":
                skipped.append(label + name)
                if skips is not None and name not in skips:
                    unexplained.append(label + name)
                elif skips is not None:
                    skipped[-1] += f" ({skips[name]})"
            else:
                failed.append(f"{label}{name} ({result})")
    for name in failed:
        print(f"failed: {name}")
    for name in skipped:
        print(f"skipped: {name}")
    for name in unexplained:
        print(f"skipped without a reason in the list of skips: {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
