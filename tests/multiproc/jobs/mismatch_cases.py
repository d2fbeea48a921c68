# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks whose calls do not go together: every one is told both calls, and goes on."""

from harness import expect

JOB = ""
BOTH = ("shm", "tcp")
# What the odd rank, the last, is said to have called, and what another one.
KINDS = {
    "count": ("allreduce of 13 float32, sum", "allreduce of 12 float32, sum"),
    "type": ("allreduce of 12 int32, sum", "allreduce of 12 float32, sum"),
    "operation": ("allreduce of 12 float32, max", "allreduce of 12 float32, sum"),
    "root": ("broadcast of 12 float32 from root 1", "broadcast of 12 float32 from root 0"),
    "collective": ("barrier", "allreduce of 12 float32, sum"),
}


def told_to_all(bench, ranks, transports, check):
    for kind, (odd, others) in KINDS.items():
        result = bench.run("-np", str(ranks), JOB, "mismatch", kind, env={"TUTTI_TRANSPORTS": transports, "TUTTI_CHECK": check})
        lines = result.out.splitlines()
        expect(result.code == 0 and len(lines) == ranks, kind, transports, check, result)
        for line in lines:
            expect("TUTTI_ERR_MISMATCH" in line and f"rank {ranks - 1} {odd} (call 2)" in line, kind, transports, line)
            expect(any(f"rank {rank} {others} (call 2)" in line for rank in range(ranks - 1)), kind, transports, line)
            expect(check == "none" or "at once" in line, kind, transports, line)


def mismatched_calls_are_named_on_every_rank(bench):
    for transports in BOTH:
        for ranks in (2, 3):
            told_to_all(bench, ranks, transports, "none")


def checked_calls_are_named_before_they_begin(bench):
    for transports in BOTH:
        told_to_all(bench, 3, transports, "full")


def checked_calls_that_agree_go_through(bench):
    for transports in BOTH:
        result = bench.run("-np", "3", JOB, "loop", "500", "4000", env={"TUTTI_TRANSPORTS": transports, "TUTTI_CHECK": "full"})
        expect(result.code == 0, transports, result)
        result = bench.run("-np", "2", JOB, "overlap", env={"TUTTI_TRANSPORTS": transports, "TUTTI_CHECK": "full"})
        expect(result.code == 0, transports, result)


CASES = [mismatched_calls_are_named_on_every_rank, checked_calls_are_named_before_they_begin, checked_calls_that_agree_go_through]
