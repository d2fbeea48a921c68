# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Messages of many to one, and of two to each other."""

from harness import expect

JOB = ""


def flood(bench, transports):
    """16 ranks, 10000 messages of 1 KB each, to one that takes them from whoever has one."""
    result = bench.run("-np", "17", JOB, "flood", "10000", "1024", env={"TUTTI_TRANSPORTS": transports}, timeout=55)
    expect(result.code == 0 and result.err == "", result)
    seconds, growth_kib = (float(word) for word in result.out.split()[1::2])
    print(f"    {transports}: {seconds:.2f} s, the receiver grew by {growth_kib / 1024:.1f} MiB")
    # Of 156 MiB that are sent.
    expect(growth_kib < 32 * 1024, result)


def many_send_to_a_slow_one_over_shm(bench):
    flood(bench, "shm")


def many_send_to_a_slow_one_over_tcp(bench):
    flood(bench, "tcp")


def two_send_to_each_other_at_once(bench):
    for transports in ("shm", "tcp"):
        for size, count in (("8", "5000"), ("1000000", "100")):
            result = bench.run("-np", "2", JOB, "exchange", count, size, env={"TUTTI_TRANSPORTS": transports})
            expect(result.code == 0 and result.err == "", transports, size, result)
            print(f"    {transports}, {size} bytes: {result.out.split()[1]} us")


CASES = [many_send_to_a_slow_one_over_shm, many_send_to_a_slow_one_over_tcp, two_send_to_each_other_at_once]
