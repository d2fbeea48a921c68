# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""More ranks than cores, idleness, counts that change, overlap."""

import re

from harness import expect

JOB = ""


def job(bench, ranks, *args, transports="shm", env=None, timeout=50):
    result = bench.run("-np", str(ranks), JOB, *args, env=dict(env or {}, TUTTI_TRANSPORTS=transports), timeout=timeout)
    expect(result.code == 0, args, transports, result)
    return result


def number(result, word):
    return float(re.search(rf"{word} ([0-9.]+)", result.out).group(1))


def loop_of_8_bytes_by_8_ranks(bench):
    for transports in ("shm", "tcp"):
        result = job(bench, 8, "loop", "1000", "8", transports=transports)
        print(f"    {transports}: {number(result, 'seconds')} s")
        expect(number(result, "seconds") < 10, transports, result)


def loop_of_64_kib_by_8_ranks(bench):
    for transports in ("shm", "tcp"):
        result = job(bench, 8, "loop", "1000", "65536", transports=transports)
        print(f"    {transports}: {number(result, 'seconds')} s")
        expect(number(result, "seconds") < 10, transports, result)


def barriers_of_64_ranks(bench):
    result = job(bench, 64, "barriers", "50")
    expect("done" in result.out, result)


def barriers_of_64_ranks_over_tcp(bench):
    result = job(bench, 64, "barriers", "20", transports="tcp")
    expect("done" in result.out, result)


def an_idle_rank_uses_no_cpu(bench):
    for transports in ("shm", "tcp"):
        result = job(bench, 3, "idle", "5", transports=transports)
        used = [float(line.split()[1]) for line in result.out.splitlines() if line.startswith("cpu")]
        print(f"    {transports}: {used}")
        expect(len(used) == 2 and max(used) < 0.1, transports, used, result)


def a_computing_rank_does_not_hold_up_its_peers(bench):
    for transports in ("shm", "tcp"):
        result = job(bench, 4, "late", "3", transports=transports)
        broadcast, send = number(result, "broadcast"), number(result, "send")
        print(f"    {transports}: broadcast {broadcast} s, new connection {send} s")
        expect(broadcast < 0.1 and send < 0.1, transports, result)


def random_counts_cost_no_more_than_sorted_ones(bench):
    result = job(bench, 2, "counts", "10000")
    print(f"    {result.out.strip()}")
    expect(number(result, "ratio") <= 1.2, result)


def a_large_allreduce_advances_without_calls(bench):
    result = job(bench, 2, "overlap")
    blocking, rest = number(result, "blocking"), number(result, "rest")
    print(f"    blocking {blocking} s, rest {rest} s")
    expect(rest < 0.2 * blocking, result)


CASES = [
    loop_of_8_bytes_by_8_ranks,
    loop_of_64_kib_by_8_ranks,
    barriers_of_64_ranks,
    barriers_of_64_ranks_over_tcp,
    an_idle_rank_uses_no_cpu,
    a_computing_rank_does_not_hold_up_its_peers,
    random_counts_cost_no_more_than_sorted_ones,
    a_large_allreduce_advances_without_calls,
]
