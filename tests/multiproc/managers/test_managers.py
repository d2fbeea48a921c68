#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs under other projects' launchers: test_managers.py JOB openmpi|mpich [WORD...]. Exit status 77: the launcher is not installed."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launcher"))
import harness  # noqa: E402
from harness import expect  # noqa: E402

SKIPPED = 77


class Manager:
    """A launcher: how it is found and called, and where its ranks read their number."""

    def __init__(self, programs, words, arguments, rank_variable, signal_base):
        self.programs, self.words, self.arguments = programs, words, arguments
        self.rank_variable, self.signal_base = rank_variable, signal_base

    def find(self):
        for name in self.programs:
            path = shutil.which(name)
            if path is None:
                continue
            about = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
            if self.words in about.stdout:
                return path
        return None


MANAGERS = {
    # PMIx. Ranks are more than cores, and a machine of tests has no other user than root.
    "openmpi": Manager(["mpirun.openmpi", "mpirun"], "Open MPI", ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
                       "OMPI_COMM_WORLD_RANK", 128),
    # PMI-1
    "mpich": Manager(["mpiexec.hydra", "mpiexec.mpich", "mpiexec"], "HYDRA", [], "PMI_RANK", 0),
}
JOB = ""
MANAGER = None


def run(bench, ranks, *command, **env):
    return bench.run(*MANAGER.arguments, "-np", str(ranks), *command, env=env)


def only_on(rank, script, otherwise):
    """A command that does one thing on one rank, and another on the others."""
    return ["sh", "-c", f'if [ "${MANAGER.rank_variable}" = {rank} ]; then {script}; else {otherwise}; fi']


def sums(bench, ranks, transports):
    result = run(bench, ranks, JOB, "loop", "50", "4096", TUTTI_TRANSPORTS=transports)
    expect(result.code == 0 and result.out.startswith("seconds ") and len(result.out.splitlines()) == 1, result)


def two_ranks_over_shm(bench):
    sums(bench, 2, "shm")


def two_ranks_over_tcp(bench):
    sums(bench, 2, "tcp")


def four_ranks_over_shm(bench):
    sums(bench, 4, "shm")


def four_ranks_over_tcp(bench):
    sums(bench, 4, "tcp")


def ranks_are_the_launchers(bench):
    """As many as it says, each once: what it put into the environment, and no job of one rank each."""
    result = run(bench, 3, JOB, "ranks")
    expect(result.code == 0 and sorted(result.out.splitlines()) == [f"rank {rank} of 3" for rank in range(3)], result)


def a_process_that_starts_again(bench):
    """Process managers serve one start of a process; later ones meet where the first did."""
    result = run(bench, 3, JOB, "worlds", "5", "20")
    expect(result.code == 0 and result.out.split() == ["done"] * 3, result)


def an_exit_code_is_passed_on(bench):
    result = run(bench, 3, *only_on(1, f"{JOB} create || exit 9; exit 3", f"exec {JOB} create"))
    expect(result.code == 3, result)


def a_killed_rank_is_named_and_ends_the_job(bench):
    result = run(bench, 3, JOB, "victim", "1")
    expect(result.code == MANAGER.signal_base + 9, result)
    # The launcher ends the others too, and may be faster than their report.
    for line in result.out.splitlines():
        expect(not line.startswith("failed ") or ("TUTTI_ERR_PEER_FAILED" in line and "rank 1" in line), result)


def a_rank_that_never_comes_ends_the_wait(bench):
    # All stay until the others have given up: a launcher ends a job of which a process has gone.
    stay = f"while [ $(ls {bench.folder} | grep -c gave-up) != 2 ]; do sleep 0.05; done"
    wait = f"{JOB} missing; touch {bench.folder}/gave-up-${MANAGER.rank_variable}; {stay}"
    result = run(bench, 3, *only_on(1, stay, wait), TUTTI_BOOTSTRAP_TIMEOUT="1s")
    lines = [line for line in result.out.splitlines() if line.startswith("TUTTI_ERR_")]
    expect(len(lines) == 2 and result.seconds < 10, result)
    # The barrier of PMI does not tell who is missing.
    words = "missing rank 1" if MANAGER is MANAGERS["openmpi"] else "not all ranks came to the process manager (PMI)"
    expect(all(line.startswith("TUTTI_ERR_MISSING_RANK") and words in line for line in lines), result)


CASES = [
    two_ranks_over_shm,
    two_ranks_over_tcp,
    four_ranks_over_shm,
    four_ranks_over_tcp,
    ranks_are_the_launchers,
    a_process_that_starts_again,
    an_exit_code_is_passed_on,
    a_killed_rank_is_named_and_ends_the_job,
    a_rank_that_never_comes_ends_the_wait,
]


def main():
    global JOB, MANAGER
    JOB, MANAGER = os.path.abspath(sys.argv[1]), MANAGERS[sys.argv[2]]
    program = MANAGER.find()
    if program is None:
        print(f"not installed: none of {', '.join(MANAGER.programs)} is {MANAGER.words}")
        return SKIPPED
    return harness.run_cases(program, [(case.__name__, case) for case in CASES], sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
