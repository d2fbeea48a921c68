#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a job are: test_topology.py TUTTIRUN TUTTI_INFO JOB [WORD...]"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launcher"))
import harness  # noqa: E402
from harness import Skip, expect  # noqa: E402

TUTTI_INFO = JOB = ""
SHOW = ["topology", "--job"]


def show(bench, ranks, *words, shell="", env=None, launch=()):
    """`tutti-info topology --job` on so many ranks; `shell` sets variables of each."""
    command = [TUTTI_INFO, *SHOW, *words]
    if shell:
        command = ["sh", "-c", f'{shell}; exec "$0" "$@"', *command]
    return bench.run("-np", str(ranks), *launch, *command, env=env)


def rows(result):
    """The table: a list of words for each rank."""
    return [line.split() for line in result.out.splitlines()[2:]]


def ranks_of_one_node(bench):
    result = show(bench, 3)
    expect(result.code == 0 and result.err == "", result)
    expect("3 ranks on 1 node; levels, innermost first: none" in result.out, result)
    expect([row[0] for row in rows(result)] == ["0", "1", "2"], result)


def simulated_nodes_and_packages(bench):
    blocks = show(bench, 8, shell="export TUTTI_NODE_ID=$((TUTTI_RANK/4)) TUTTI_PACKAGE_ID=$((TUTTI_RANK/2))")
    expect("8 ranks on 2 nodes; levels, innermost first: package (4 groups), node (2 groups)" in blocks.out, blocks)
    expect([row[1] + row[2] for row in rows(blocks)] == ["00", "00", "01", "01", "12", "12", "13", "13"], blocks)
    robin = show(bench, 5, shell="export TUTTI_NODE_ID=$((TUTTI_RANK%2))")
    expect("5 ranks on 2 nodes; levels, innermost first: node (2 groups)" in robin.out, robin)
    expect([row[1] for row in rows(robin)] == ["0", "1", "0", "1", "0"], robin)
    each = show(bench, 3, shell="export TUTTI_NODE_ID=$TUTTI_RANK")
    expect("3 ranks on 3 nodes; levels, innermost first: none" in each.out, each)
    unbound = show(bench, 4, shell="test $TUTTI_RANK = 3 || export TUTTI_PACKAGE_ID=$((TUTTI_RANK%2))")
    if rows(unbound)[3][2] == "-":
        expect("levels, innermost first: none" in unbound.out, unbound)


def affinities_are_those_of_each_rank(bench):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("one CPU only")
    # The first two ranks share a CPU, the third may use two.
    places = json.loads(show(bench, 3, "--json", shell=f"test $TUTTI_RANK = 2 && taskset -pc {cpus[0]},{cpus[1]} $$ >&2 "
                             f"|| taskset -pc {cpus[0]} $$ >&2", launch=("--bind", "none")).out)["places"]
    by_rank = {}
    for place in places:
        first, _, last = place["ranks"].partition("-")
        for rank in range(int(first), int(last or first) + 1):
            by_rank[rank] = place
    expect([by_rank[rank]["cpus"] for rank in (0, 1)] == [str(cpus[0])] * 2, places)
    expect(by_rank[2]["cpus"] in (f"{cpus[0]},{cpus[1]}", f"{cpus[0]}-{cpus[1]}"), places)


def a_dumped_job_is_a_topology_file(bench):
    imagined = show(bench, 4, "--json", shell="export TUTTI_NODE_ID=$((TUTTI_RANK/2))")
    expect(imagined.code == 0, imagined)
    file = bench.write("job.json", imagined.out)
    result = show(bench, 4, env={"TUTTI_TOPOLOGY_FILE": file})
    expect(result.code == 0 and "4 ranks on 2 nodes" in result.out, result)
    run = bench.run("-np", "4", JOB, "loop", "20", "8", env={"TUTTI_TOPOLOGY_FILE": file, "TUTTI_ALLREDUCE": "hierarchical"})
    expect(run.code == 0, run)


def only_rank_0_reads_the_topology_file(bench):
    file = bench.write("job.json", '{"tutti_topology": 1, "places": [{"ranks": "0,2", "host": "a"}, {"ranks": "1", "host": "b"}]}')
    result = show(bench, 3, shell=f"test $TUTTI_RANK = 0 && export TUTTI_TOPOLOGY_FILE={file} || export TUTTI_TOPOLOGY_FILE=/absent")
    expect(result.code == 0 and [row[1] for row in rows(result)] == ["0", "1", "0"], result)


def a_bad_topology_file_is_told_at_once(bench):
    file = bench.write("bad.json", '{"tutti_topology": 1, "places": [{"ranks": "0-1", "hoist": "a"}]}')
    told = show(bench, 3, env={"TUTTI_TOPOLOGY_FILE": file})
    expect(told.code != 0 and told.err.count("bad.json") == 1 and "places[0].host" in told.err and told.seconds < 5, told)
    run = bench.run("-np", "3", JOB, "create", env={"TUTTI_TOPOLOGY_FILE": file})
    expect(run.code == 1 and "bad.json: places[0].host" in run.err and run.seconds < 5, run)


def main():
    global TUTTI_INFO, JOB
    program, TUTTI_INFO, JOB = (os.path.abspath(word) for word in sys.argv[1:4])
    cases = [ranks_of_one_node, simulated_nodes_and_packages, affinities_are_those_of_each_rank, a_dumped_job_is_a_topology_file,
             only_rank_0_reads_the_topology_file, a_bad_topology_file_is_told_at_once]
    return harness.run_cases(program, [(case.__name__, case) for case in cases], sys.argv[4:])


if __name__ == "__main__":
    sys.exit(main())
