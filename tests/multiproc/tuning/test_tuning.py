#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""test_tuning.py TUTTIRUN CHOICES TUTTI_TUNE [WORD...]: ranks that are given different inputs choose alike; tutti-tune measures,
is interrupted, goes on, and what it wrote is used."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launcher"))
import harness  # noqa: E402
from harness import expect  # noqa: E402

TUTTIRUN, CHOICES, TUNE = (os.path.abspath(path) for path in sys.argv[1:4])

ZERO = """tutti-tuning 1
use allreduce ranks=4 nodes=1 type=int bytes<=4K flat
use allreduce ranks=4 nodes=1 type=int bytes=any ring:channels=2
use broadcast ranks=4 nodes=1 bytes=any chain
use allreduce ranks=2 nodes=1 type=int bytes=any tree
"""
ONE = """tutti-tuning 1
use allreduce ranks=4 nodes=1 type=int bytes=any double_tree
use broadcast ranks=4 nodes=1 bytes=any binomial
"""
# What each rank has in its environment before it starts.
EACH = """#!/bin/sh
case $TUTTI_RANK in
0) export TUTTI_TUNING_FILE=zero.txt TUTTI_CPU=scalar TUTTI_SCAN=chain ;;
1) export TUTTI_TUNING_FILE=one.txt TUTTI_CPU=sse4 TUTTI_ALLREDUCE=tree TUTTI_DETERMINISTIC=on ;;
2) export TUTTI_TUNING_FILE=absent.txt TUTTI_BROADCAST=nonsense TUTTI_SPIN=0 ;;
3) export TUTTI_SCAN=recursive_doubling TUTTI_REDUCE_SCATTER=ring ;;
esac
export TUTTI_LOG_LEVEL=debug TUTTI_LOG_FILE=log.%r
exec "$@"
"""


def choices_in(log):
    with open(log, encoding="utf-8") as file:
        return re.findall(r"(\w+ of \d+ bytes: .*)", file.read())


def ranks_with_different_inputs_choose_alike(bench):
    bench.write("zero.txt", ZERO)
    bench.write("one.txt", ONE)
    each = bench.write("each", EACH, 0o755)
    for transports, check in (("shm", "none"), ("tcp", "none"), ("shm", "full")):
        result = bench.run("-np", "4", each, CHOICES, env={"TUTTI_TRANSPORTS": transports, "TUTTI_CHECK": check})
        expect(result.code == 0 and result.out.count("right") == 4, transports, check, result)
        made = [set(choices_in(bench.path(f"log.{rank}"))) for rank in range(4)]
        for rank, ones in enumerate(made):
            expect(ones == made[rank % 2], transports, rank, ones ^ made[rank % 2])
        world = made[0] & made[1]
        for told in ("allreduce of 4 bytes: flat:segment_bytes=0: measured on 4 ranks on 1 node (zero.txt:2)",
                     "channels=2: measured on 4 ranks on 1 node (zero.txt:3)", "chain:segment_bytes=64K: measured", "forced by the setting scan"):
            expect(any(told in line for line in world), transports, told, world)
        expect(any("tree:segment_bytes=64K: measured on 2 ranks on 1 node (zero.txt:5)" in line for line in made[0]), made[0])
        for rank in range(4):
            os.remove(bench.path(f"log.{rank}"))


def a_tuning_file_that_cannot_be_used_is_told_by_every_rank(bench):
    bench.write("bad.txt", "tutti-tuning 1\nuse allreduce ranks=2 nodes=1 bytes=any rign\n")
    for name, told in (("bad.txt", "bad.txt:2: there is no allreduce algorithm 'rign'"), ("absent.txt", "cannot read absent.txt: No such file")):
        result = bench.run("-np", "3", CHOICES, "fails", env={"TUTTI_TUNING_FILE": name})
        lines = result.out.splitlines()
        expect(result.code == 0 and len(lines) == 3, name, result)
        expect(all(line.startswith("TUTTI_ERR_CONFIG") and told in line for line in lines), name, result)


def read(bench, name):
    try:
        with open(bench.path(name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def tutti_tune_is_interrupted_and_goes_on(bench):
    job = bench.start("-np", "3", TUNE, "barrier", "allreduce", "-o", "tuning.txt", "-e", "64K", "--budget", "5s")
    expect(harness.wait_for(lambda: "use barrier" in read(bench, "tuning.txt"), 30), "nothing was written")
    job.send_signal(signal.SIGINT)
    result = bench.finish(job)
    expect(result.code == 130 and "interrupted" in result.err, result)
    barrier = re.findall(r"time barrier.*", read(bench, "tuning.txt"))
    expect(len(barrier) > 0, read(bench, "tuning.txt"))
    again = bench.run("-np", "3", TUNE, "barrier", "allreduce", "-o", "tuning.txt", "--quick", "-e", "64K", "--resume")
    expect(again.code == 0 and "allreduce ranks=3 nodes=1 links=shm type=float" in again.out, again)
    text = read(bench, "tuning.txt")
    expect(re.findall(r"time barrier.*", text) == barrier, "measured again", text)
    expect(re.search(r"^use allreduce ranks=3 nodes=1 links=shm type=float bytes=any \w+", text, re.M), text)
    other = bench.run("-np", "2", TUNE, "allreduce", "-t", "int", "-o", "tuning.txt", "--quick", "-e", "4K")
    expect(other.code == 0, other)
    expect(text.replace("tutti-tuning 1\n", "").strip().splitlines()[-1] in read(bench, "tuning.txt"), "what there was is gone")
    expect("use allreduce ranks=2 nodes=1 links=shm type=int " in read(bench, "tuning.txt"), read(bench, "tuning.txt"))
    used = bench.run("-np", "3", CHOICES, env={"TUTTI_TUNING_FILE": "tuning.txt", "TUTTI_LOG_LEVEL": "debug", "TUTTI_LOG_FILE": "log.%r"})
    expect(used.code == 0 and used.out.count("right") == 3, used)
    expect(any("measured on 3 ranks on 1 node, with type float (tuning.txt:" in line for line in choices_in(bench.path("log.0"))),
           choices_in(bench.path("log.0")))


def what_holds_for_several_nodes_is_kept_apart(bench):
    nodes = bench.write("nodes", '#!/bin/sh\nexport TUTTI_NODE_ID=$((TUTTI_RANK / 2))\nexec "$@"\n', 0o755)
    # Who is far behind is not written down: of one collective it may be any.
    result = bench.run("-np", "4", nodes, TUNE, "allreduce", "broadcast", "reduce", "barrier", "-o", "tuning.txt", "--quick", "-e", "128")
    expect(result.code == 0, result)
    text = read(bench, "tuning.txt")
    expect("use allreduce ranks=4 nodes=2 links=shm/tcp type=float bytes=any " in text, text)
    expect("hierarchical" in text, "no algorithm for nested ranks was measured", text)
    log = {"TUTTI_TUNING_FILE": "tuning.txt", "TUTTI_LOG_LEVEL": "debug", "TUTTI_LOG_FILE": "log.%r"}
    for prefix, told in (([nodes], "measured on 4 ranks on 2 nodes, with type float"), ([], "has nothing near 4 ranks on 1 node over shm")):
        result = bench.run("-np", "4", *prefix, CHOICES, env=log)
        expect(result.code == 0 and result.out.count("right") == 4, result)
        made = [choices_in(bench.path(f"log.{rank}")) for rank in range(4)]
        # The halves are of one rank a node, or of two on one: alike too.
        expect(made[0] == made[2] and made[1] == made[3] and any(told in line for line in made[0]), told, made)
        for rank in range(4):
            os.remove(bench.path(f"log.{rank}"))


def what_is_chosen_is_judged(bench):
    bench.write("chain.txt", "tutti-tuning 1\nuse broadcast ranks=3 nodes=1 bytes=any chain\n")
    env = {"TUTTI_TRANSPORTS": "tcp", "TUTTI_TUNING_FILE": bench.path("chain.txt")}
    result = bench.run("-np", "3", TUNE, "judge", "broadcast", "reduce", "--quick", "-e", "4K", env=env)
    expect(result.code == 0 and "3 ranks on 1 nodes over tcp" in result.out, result)
    expect(len(re.findall(r"^(?:broadcast|reduce) +\d+ +[\d.]+ +[\d.]+ +[\d.]+  \w", result.out, re.M)) == 6, result)
    # The choice is one of the contenders: as fast as itself, or another than the best.
    own = r"^broadcast +\d+ +([\d.]+) +(?:\1 +1\.00  chain:\S+ += *$|[\d.]+ +[\d.]+  (?!chain)\S+ +chain:segment_bytes=64K *$)"
    expect(len(re.findall(own, result.out, re.M)) == 3, result)
    expect("points: 6\nwithin 15 %: " in result.out and "over 40 %: " in result.out, result)


def what_is_wrong_is_told_once(bench):
    bench.write("bad.txt", "tutti-tuning 1\nuse allreduce ranks=4 nodes=1 bytes=any rign\n")
    for arguments, code, told in ((["-o", "bad.txt"], 2, "bad.txt:2: "), (["-o", "absent/file"], 3, "absent/file: No such file")):
        result = bench.run("-np", "2", TUNE, "barrier", *arguments)
        expect(result.code == code and result.err.count(told) == 1, arguments, result)


CASES = [ranks_with_different_inputs_choose_alike, a_tuning_file_that_cannot_be_used_is_told_by_every_rank,
         tutti_tune_is_interrupted_and_goes_on, what_holds_for_several_nodes_is_kept_apart, what_is_chosen_is_judged, what_is_wrong_is_told_once]

if __name__ == "__main__":
    sys.exit(harness.run_cases(TUTTIRUN, [(case.__name__, case) for case in CASES], sys.argv[4:]))
