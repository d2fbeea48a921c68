# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Many ranks, many communicators, many log lines; and temporary folders that are no help."""

import re

from harness import expect

JOB = ""
BOTH = ("shm", "tcp")


def limited(bench, descriptors, ranks, *args, transports, timeout=50):
    """The launcher and all ranks with a limit of descriptors."""
    return bench.run("-np", str(ranks), JOB, *args, prefix=("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"),
                     env={"TUTTI_TRANSPORTS": transports}, timeout=timeout)


def two_hundred_ranks_over_shm(bench):
    result = limited(bench, 1024, 200, "create", transports="shm")
    expect(result.code == 0 and "done" in result.out and result.err == "", result)
    print(f"    {result.seconds:.2f} s")


def two_hundred_ranks_over_tcp(bench):
    result = limited(bench, 1024, 200, "create", transports="tcp")
    expect(result.code == 0 and "done" in result.out and result.err == "", result)
    print(f"    {result.seconds:.2f} s")


def time_waits():
    count = 0
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}") as file:
            count += sum(line.split()[3] == "06" for line in file.read().splitlines()[1:])
    return count


def two_hundred_short_lives_leave_few_ports_in_use(bench):
    before = time_waits()
    result = bench.run("-np", "2", JOB, "worlds", "200", "0", env={"TUTTI_TRANSPORTS": "tcp"}, timeout=50)
    expect(result.code == 0 and result.out == "done\n" * 2, result)
    print(f"    {result.seconds:.2f} s, {time_waits() - before} sockets in TIME_WAIT")
    expect(time_waits() - before < 50, before, time_waits())


def two_hundred_live_groups_with_64_descriptors(bench):
    for transports in BOTH:
        result = limited(bench, 64, 3, "groups", "200", transports=transports)
        expect(result.code == 0 and result.out == "done\n" * 3 and result.err == "", transports, result)


def ranks_come_and_go_at_their_own_pace(bench):
    for transports in BOTH:
        result = bench.run("-np", "4", JOB, "worlds", "50", "100", env={"TUTTI_TRANSPORTS": transports}, timeout=50)
        expect(result.code == 0 and result.out == "done\n" * 4 and result.err == "", transports, result)


def a_straggler_still_has_the_communicator_before(bench):
    for transports in BOTH:
        result = bench.run("-np", "3", JOB, "straggler", "8", "500", env={"TUTTI_TRANSPORTS": transports}, timeout=50)
        expect(result.code == 0 and result.out == "done\n" * 3 and result.err == "", transports, result)
        expect(result.seconds < 8, transports, result.seconds)


def log_lines_of_8_ranks_are_whole(bench):
    line_form = re.compile(r"\d\d:\d\d:\d\d\.\d{3} tutti (error|warning|info|debug|trace): \[tutti (\d)\] \S.*")
    for transports in BOTH:
        result = bench.run("-np", "8", JOB, "loop", "50", "1000", env={"TUTTI_TRANSPORTS": transports, "TUTTI_LOG_LEVEL": "debug"})
        lines = result.err.splitlines()
        expect(result.code == 0 and len(lines) >= 8, transports, result)
        matches = [line_form.fullmatch(line) for line in lines]
        expect(all(matches), transports, [line for line, match in zip(lines, matches) if not match])
        expect({match.group(2) for match in matches} == set("01234567"), transports, result)


def temporary_folders_that_are_no_help(bench):
    long = bench.path("t" * 150)
    for folder in (long, "/proc/1", bench.path("missing"), ""):
        for transports in BOTH:
            result = bench.run("-np", "2", JOB, "create", env={"TUTTI_TRANSPORTS": transports, "TMPDIR": folder})
            expect(result.code == 0 and "done" in result.out and result.err == "", folder, transports, result)


CASES = [
    two_hundred_ranks_over_shm,
    two_hundred_ranks_over_tcp,
    two_hundred_short_lives_leave_few_ports_in_use,
    two_hundred_live_groups_with_64_descriptors,
    ranks_come_and_go_at_their_own_pace,
    a_straggler_still_has_the_communicator_before,
    log_lines_of_8_ranks_are_whole,
    temporary_folders_that_are_no_help,
]
