# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that die, leave, stop, or never come."""

import os
import signal
import time

from harness import expect, wait_for

JOB = ""


def one_of_8_killed(bench, transports):
    # Two nodes for the launcher's sake would not help: it would end the job. Without it nobody ends the others.
    command = " & ".join(f"TUTTI_RANK={rank} {JOB} victim 5 >{bench.path(f'out{rank}')} 2>&1" for rank in range(8))
    env = {"TUTTI_SIZE": "8", "TUTTI_RENDEZVOUS": f"file://{bench.path('meet')}", "TUTTI_TRANSPORTS": transports,
           "TUTTI_SECRET": "a secret of this test"}
    shell = bench.start_command(["sh", "-c", command + " & wait"], env=env)
    result = bench.finish(shell, timeout=40)
    texts = [open(bench.path(f"out{rank}")).read() for rank in range(8)]
    died = float(next(line for line in texts[5].splitlines() if line.startswith("died")).split()[1])
    worst = 0.0
    for rank, text in enumerate(texts):
        if rank == 5:
            continue
        lines = [line for line in text.splitlines() if line.startswith("failed")]
        expect(len(lines) == 1, rank, text, result)
        expect("TUTTI_ERR_PEER_FAILED" in lines[0] and "rank 5" in lines[0], lines[0])
        worst = max(worst, float(lines[0].split()[1]) - died)
    print(f"    {transports}: all knew after {worst:.3f} s")
    expect(worst < 1.0, worst, texts)


def one_of_8_killed_over_shm(bench):
    one_of_8_killed(bench, "shm")


def one_of_8_killed_over_tcp(bench):
    one_of_8_killed(bench, "tcp")


def a_killed_job_leaves_nothing(bench):
    before = set(os.listdir("/dev/shm")) | set(os.listdir("/tmp"))
    for transports in ("shm", "tcp"):
        running = bench.start("-np", "4", JOB, "forever", env={"TUTTI_TRANSPORTS": transports})
        expect(running.stdout.readline().strip() == b"running", "did not start")
        # All at once, the launcher included.
        for pid in bench.marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        running.wait(10)
        running.stdout.close()
        running.stderr.close()
        expect(bench.gone_within(5), "processes left", bench.marked())
    after = set(os.listdir("/dev/shm")) | set(os.listdir("/tmp"))
    left = {name for name in after - before if "tutti" in name.lower()}
    expect(not left, "files left", left)
    with open("/proc/net/unix") as file:
        names = [line.split()[-1] for line in file if "tutti" in line]
    expect(not names, "sockets left", names)


def a_rank_that_destroyed_its_communicator(bench):
    for transports in ("shm", "tcp"):
        result = bench.run("-np", "3", JOB, "destroyed", env={"TUTTI_TRANSPORTS": transports})
        expect(result.code == 0, result)
        lines = [line for line in result.out.splitlines() if line.startswith("TUTTI_")]
        expect(len(lines) == 2 and all(line.startswith("TUTTI_ERR_PEER_FAILED") and "rank 1" in line for line in lines), result)
        expect(all(float(line.split()[1]) < 5 for line in lines), result)


def a_stopped_rank_delays_and_harms_nobody(bench):
    running = bench.start("-np", "3", JOB, "loop", "20000", "8", env={"TUTTI_TRANSPORTS": "shm"})
    ranks = wait_for(lambda: [pid for pid in bench.marked() if is_job(pid)] if sum(map(is_job, bench.marked())) == 3 else None, 10)
    expect(ranks, "three ranks")
    os.kill(ranks[1], signal.SIGSTOP)
    time.sleep(2)
    expect(running.poll() is None, "it went on without the rank")
    os.kill(ranks[1], signal.SIGCONT)
    result = bench.finish(running, timeout=40)
    expect(result.code == 0, result)


def is_job(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(JOB)
    except OSError:
        return False


CASES = [
    one_of_8_killed_over_shm,
    one_of_8_killed_over_tcp,
    a_killed_job_leaves_nothing,
    a_rank_that_destroyed_its_communicator,
    a_stopped_rank_delays_and_harms_nobody,
]
