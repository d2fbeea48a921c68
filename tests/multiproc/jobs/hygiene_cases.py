# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""What a library must leave alone: memory, descriptors, children, signals, the environment."""

import re

from harness import expect

JOB = ""


def no_allocation_once_schedules_are_cached(bench):
    for transports in ("shm", "tcp"):
        result = bench.run("-np", "2", JOB, "allocations", env={"TUTTI_TRANSPORTS": transports})
        expect(result.code == 0, result)
        made = [line for line in result.out.splitlines() if line.startswith("allocations")]
        expect(made == ["allocations 0 0 0"] * 2, transports, made, result)  # of collectives, groups, messages


def children_may_exec_exit_and_be_wrong(bench):
    for transports in ("shm", "tcp"):
        result = bench.run("-np", "2", JOB, "fork", env={"TUTTI_TRANSPORTS": transports})
        expect(result.code == 0 and "done" in result.out and result.err == "", transports, result)


def no_signal_handler_no_variable_no_sigpipe(bench):
    for transports in ("shm", "tcp"):
        result = bench.run("-np", "3", JOB, "quiet", env={"TUTTI_TRANSPORTS": transports})
        expect(result.code == 0 and result.out.count("done") == 3, transports, result)


def more_than_2_to_the_31_elements(bench):
    result = bench.run("-np", "2", JOB, "large", timeout=55)
    expect(result.code == 0 and "done" in result.out, result)


def communicators_come_and_go(bench):
    for transports in ("shm", "tcp"):
        result = bench.run("-np", "2", "sh", "-c", f"ulimit -n 64; exec {JOB} cycles 300", env={"TUTTI_TRANSPORTS": transports})
        expect(result.code == 0 and result.out.count("done") == 2, transports, result)


def memory_stays_flat(bench):
    for transports in ("shm", "tcp"):
        result = bench.run("-np", "2", JOB, "memory", "40000", env={"TUTTI_TRANSPORTS": transports}, timeout=50)
        expect(result.code == 0, result)
        growth = [int(n) for n in re.findall(r"growth_kib (\d+)", result.out)]
        print(f"    {transports}: {growth} KiB")
        expect(len(growth) == 2 and max(growth) <= 256, transports, growth)


def a_rank_keeps_little_memory(bench):
    for transports in ("shm", "tcp"):
        for ranks in (2, 8, 32):
            result = bench.run("-np", str(ranks), JOB, "footprint", env={"TUTTI_TRANSPORTS": transports}, timeout=50)
            expect(result.code == 0, result)
            kib = [int(n) for n in re.findall(r"^kib (\d+)", result.out, re.MULTILINE)]
            print(f"    {transports}, {ranks} ranks: at most {max(kib, default=0)} KiB")
            expect(len(kib) == ranks and 0 < max(kib) <= 8192 + 64 * (ranks - 1), transports, ranks, kib)


def jobs_that_end_at_once_are_silent(bench):
    for _ in range(20):
        result = bench.run("-np", "8", JOB, "create", env={"TUTTI_TRANSPORTS": "shm"})
        expect(result.code == 0 and result.err == "", result)


CASES = [
    no_allocation_once_schedules_are_cached,
    children_may_exec_exit_and_be_wrong,
    no_signal_handler_no_variable_no_sigpipe,
    more_than_2_to_the_31_elements,
    communicators_come_and_go,
    memory_stays_flat,
    a_rank_keeps_little_memory,
    jobs_that_end_at_once_are_silent,
]
