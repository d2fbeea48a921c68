# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Starting by hand, from files, from other launchers' environments; and ranks that never come."""

import socket
import time

from harness import expect

JOB = ""


def ranks(bench, size, mode, env, missing=()):
    """Starts ranks without a launcher; returns their results."""
    started = []
    for rank in range(size):
        if rank in missing:
            continue
        one = dict(env, TUTTI_RANK=str(rank), TUTTI_SIZE=str(size))
        started.append(bench.start_command([JOB, mode], env=one))
    return [bench.finish(process) for process in started]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def by_hand_over_tcp(bench):
    env = {"TUTTI_RENDEZVOUS": f"tcp://127.0.0.1:{free_port()}", "TUTTI_SECRET": "some words"}
    for result in ranks(bench, 3, "create", env):
        expect(result.code == 0 and result.err == "", result)


def by_hand_over_a_file(bench):
    env = {"TUTTI_RENDEZVOUS": f"file://{bench.path('meet')}", "TUTTI_SECRET": "some words"}
    for _ in range(3):  # the file of the job before does no harm
        for result in ranks(bench, 3, "create", env):
            expect(result.code == 0 and result.err == "", result)


def a_missing_rank_is_named_by_all_that_wait(bench):
    env = {"TUTTI_RENDEZVOUS": f"tcp://127.0.0.1:{free_port()}", "TUTTI_SECRET": "some words", "TUTTI_BOOTSTRAP_TIMEOUT": "2s"}
    began = time.monotonic()
    for result in ranks(bench, 4, "missing", env, missing=(2,)):
        expect(result.out.startswith("TUTTI_ERR_MISSING_RANK") and "2" in result.out.split(" ", 2)[2], result)
    expect(time.monotonic() - began < 8, "in time")


def a_rendezvous_where_nobody_listens(bench):
    env = {"TUTTI_RENDEZVOUS": f"tcp://127.0.0.1:{free_port()}", "TUTTI_SECRET": "some words", "TUTTI_BOOTSTRAP_TIMEOUT": "2s"}
    began = time.monotonic()
    (result,) = ranks(bench, 2, "missing", env, missing=(0,))
    expect(result.out.startswith(("TUTTI_ERR_CONNECT", "TUTTI_ERR_MISSING_RANK")), result)
    expect(1.5 < time.monotonic() - began < 6, "about two seconds")


def contradictions_are_named(bench):
    for variables, word in (
        ({"TUTTI_RANK": "4", "TUTTI_SIZE": "4"}, "4"),
        ({"TUTTI_RANK": "-1", "TUTTI_SIZE": "4"}, "-1"),
        ({"TUTTI_RANK": "0", "TUTTI_SIZE": "0"}, "0"),
        ({"TUTTI_RANK": "x", "TUTTI_SIZE": "4"}, "x"),
        ({"TUTTI_RANK": "0", "TUTTI_SIZE": "4"}, "TUTTI_RENDEZVOUS"),
        ({"TUTTI_RANK": "0", "TUTTI_SIZE": "2", "TUTTI_RENDEZVOUS": "tcp://127.0.0.1:70000"}, "70000"),
        ({"TUTTI_RANK": "0", "TUTTI_SIZE": "2", "TUTTI_RENDEZVOUS": "udp://127.0.0.1:1"}, "udp"),
    ):
        process = bench.start_command([JOB, "missing"], env=dict(variables, TUTTI_SECRET="some words", TUTTI_BOOTSTRAP_TIMEOUT="2s"))
        result = bench.finish(process)
        expect(result.code == 0 and result.out.startswith("TUTTI_ERR_") and word in result.out, variables, result)
        expect(float(result.out.split()[1]) < 1.5, "at once", result)


def a_setting_with_a_slip_is_reported(bench):
    process = bench.start_command([JOB, "create"], env={"TUTTI_TRANSPORT": "shm"})
    result = bench.finish(process)
    expect(result.code == 0 and "TUTTI_TRANSPORTS" in result.err, result)
    process = bench.start_command([JOB, "create"], env={"TUTTI_TIMEOUT": "soon"})
    result = bench.finish(process)
    expect(result.code == 1 and "TUTTI_TIMEOUT" in result.err and "soon" in result.err, result)


def under_torchrun_like_variables(bench):
    port = str(free_port())
    started = []
    for rank in range(2):
        env = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "none", "TUTTI_SECRET": "some words"}
        started.append(bench.start_command([JOB, "create"], env=env))
    for process in started:
        result = bench.finish(process)
        expect(result.code == 0, result)


CASES = [
    by_hand_over_tcp,
    by_hand_over_a_file,
    a_missing_rank_is_named_by_all_that_wait,
    a_rendezvous_where_nobody_listens,
    contradictions_are_named,
    a_setting_with_a_slip_is_reported,
    under_torchrun_like_variables,
]
