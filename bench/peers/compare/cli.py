# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/compare-peers."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import signal
import sys
import time

from . import contenders, install, pairing, picture, report, startup
from .resident import PeerError, Probe, busy_cpus
from .session import Group, Point, Session, TuttiError

COLLECTIVES = ["allreduce", "broadcast", "alltoall", "allgather", "reduce_scatter", "reduce", "gather", "scatter", "barrier"]
QUICK = {"ranks": [2, 4], "collectives": COLLECTIVES[:3], "media": ["shm", "tcp"], "sizes": [8, 4096, 256 << 10, 16 << 20],
         "budget": 165.0}
WHOLE = {"ranks": [2, 4], "collectives": COLLECTIVES, "media": ["shm", "tcp"], "sizes": [4 << shift for shift in range(0, 25, 2)],
         "budget": 0.0}
STARTUP = {"ranks": [2, 8, 32, 64]}
EPILOG = """examples:
  tools/compare-peers --quick                            the fixed short comparison, under 3 minutes
  tools/compare-peers --quick --json now.json            the same, all figures kept
  tools/compare-peers --collectives allreduce --ranks 2 --media shm --sizes 64K,1M --pairs 25
  tools/compare-peers --peers ompi-ucx,gloo-ring         only these peers
  tools/compare-peers --startup                          launcher, init, barrier and finalize of 2, 8, 32 and 64 ranks
  tools/compare-peers --list                             who would take part

exit codes: 0 measured; 1 Tutti could not be measured, or gave a wrong result; 2 bad arguments or missing parts; 130 interrupted. docs/compare-peers.md says how a point is judged."""


def size_bytes(word):
    match = re.fullmatch(r"(\d+)([KMG]?)", word)
    if not match:
        raise argparse.ArgumentTypeError(f"'{word}' is no size: write 8, 4K, 16M or 1G")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def rank_count(word):
    if not word.isdigit() or not 2 <= int(word) <= 256:
        raise argparse.ArgumentTypeError(f"'{word}' is no number of ranks from 2 to 256")
    return int(word)


def list_of(each):
    def parse(text):
        return [each(word) for word in text.split(",")]
    return parse


def one_of(words):
    def parse(word):
        if word not in words:
            raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(words)}")
        return word
    return parse


def positive(word):
    try:
        value = float(word)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"'{word}' is no number above 0")
    return value


def parser():
    made = argparse.ArgumentParser(prog="compare-peers", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=EPILOG,
                                   description="Measures Tutti beside other libraries, in turns of short slices.")
    made.add_argument("--quick", action="store_true", help="allreduce, broadcast, alltoall; 8, 4K, 256K, 16M; 2 and 4 ranks; 165 s")
    made.add_argument("--startup", action="store_true",
                      help="how long jobs take that only start, meet and end, with their launchers, instead; 2, 8, 32 and 64 ranks")
    made.add_argument("--ranks", type=list_of(rank_count), metavar="N,...", help="default: 2,4")
    made.add_argument("--collectives", type=list_of(one_of(COLLECTIVES)), metavar="NAME,...", help="default: " + ",".join(COLLECTIVES))
    made.add_argument("--media", type=list_of(one_of(["shm", "tcp"])), metavar="NAME,...", help="default: shm,tcp")
    made.add_argument("--sizes", type=list_of(size_bytes), metavar="BYTES,...", help="bytes of the whole buffer; default: 4 to 64M")
    made.add_argument("--peers", type=lambda text: text.split(","), metavar="NAME,...", help="only these; 'none': Tutti alone")
    made.add_argument("--pairs", type=int, default=9, metavar="N", help="pairs of slices for each peer and point; default: 9")
    made.add_argument("--slice-ms", type=positive, default=50.0, metavar="MS", help="length of a slice; default: 50")
    made.add_argument("--budget", type=float, metavar="SECONDS", help="for all points together; 0: as long as the pairs take")
    made.add_argument("--give-up", type=float, default=10.0, metavar="X",
                      help="a peer this many times slower than the best is left out of the point; 0: never; default: 10")
    made.add_argument("--split-ns", type=positive, default=pairing.SPLIT_NS, metavar="NS",
                      help="round trip that divides near CPUs from far ones; default: 300")
    made.add_argument("--pin", choices=["auto", "all", "none"], default="auto",
                      help="bind ranks to CPUs in turn; auto: if each has one of its own")
    made.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything there")
    made.add_argument("--picture", type=pathlib.Path, metavar="FILE", help="draw the curves (svg, png, pdf; needs matplotlib)")
    made.add_argument("--build-dir", type=pathlib.Path, default=pathlib.Path("build"), metavar="DIR", help="default: build")
    made.add_argument("--venv", type=pathlib.Path, metavar="DIR", help="peers of PyPI; default: DIR of the build/peers-venv")
    made.add_argument("--install-peers", action="store_true", help="first install Debian's Open MPI, MPICH and Gloo, and build")
    made.add_argument("--pypi-peers", action="store_true", help="first install MPICH, Intel MPI and Open MPI of PyPI into the venv")
    made.add_argument("--list", action="store_true", help="say who would take part, and end")
    return made


def choices(words):
    options = parser().parse_args(words)
    if options.startup:
        curves = [name for name in ("quick", "collectives", "media", "sizes", "budget", "picture") if getattr(options, name)]
        if curves:
            raise PeerError(f"--startup measures no collectives: leave out --{curves[0]}")
        options.ranks = options.ranks or STARTUP["ranks"]
    for name, value in (QUICK if options.quick else WHOLE).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.pairs < 1:
        raise PeerError(f"--pairs {options.pairs}: at least 1")
    options.min_rounds, options.max_rounds = min(3, options.pairs), 4 * options.pairs
    options.venv = options.venv or options.build_dir / "peers-venv"
    return options


def points_of(options, ranks, medium):
    for collective in options.collectives:
        for size in [0] if collective == "barrier" else sorted(options.sizes):
            yield Point(collective, ranks, medium, size)


def say(line):
    print(line, file=sys.stderr, flush=True)


def peers_of(options):
    found, missing = contenders.find(options.build_dir, options.venv)
    for line in missing:
        say(f"compare-peers: {line}")
    if options.peers is None:
        return found
    wanted = set(options.peers) - {"none"}
    unknown = wanted - {peer.name for peer in found}
    if unknown:
        raise PeerError(f"--peers {','.join(sorted(unknown))}: not there; there are {', '.join(peer.name for peer in found) or 'none'}")
    return [peer for peer in found if peer.name in wanted]


def cpus_for(options, ranks):
    available = sorted(os.sched_getaffinity(0))
    pinned = options.pin == "all" or (options.pin == "auto" and ranks <= len(available))
    return available if pinned else []


def measure_all(options, peers, all_measured, facts):
    """Fills all_measured and facts as it goes, so that an interrupted run keeps what it has."""
    available = sorted(os.sched_getaffinity(0))
    probe = Probe(str(options.build_dir / "bench/peers/tutti-peers-probe"), available)
    session = Session(probe, options, len(available), say)
    shapes = [(ranks, medium) for ranks in options.ranks for medium in options.media]
    left = sum(len(list(points_of(options, *shape))) for shape in shapes)
    end_s = time.monotonic() + options.budget if options.budget else None
    print(report.HEAD, flush=True)
    try:
        for ranks, medium in shapes:
            field = [contenders.tutti(options.build_dir, medium)]
            field += [peer for peer in peers if peer.medium == medium and contenders.takes_part(peer.name, ranks, len(available))]
            group = Group(field, ranks, cpus_for(options, ranks), say)
            facts["versions"].update({name: job.version for name, job in group.jobs.items()})
            try:
                for point in points_of(options, ranks, medium):
                    now = time.monotonic()
                    until = now + max(0.0, end_s - now) / left if end_s else float("inf")
                    all_measured.append(session.measure(group, point, until))
                    left -= 1
                    print("\n".join(report.lines_of(all_measured[-1])), flush=True)
            finally:
                group.stop()
    finally:
        probe.stop()


def measure_startup(options, peers, rows):
    """Fills rows as it goes."""
    print(startup.HEAD, flush=True)
    ours = dataclasses.replace(contenders.tutti(options.build_dir, ""), environment={})  # all its media, as it is by default
    field = [ours, *startup.one_of_each(peers)]
    for ranks in options.ranks:
        rows += startup.measure(field, ranks, options.pairs, startup.start_once, say)
        print("\n".join(startup.line_of(row) for row in rows if row.ranks == ranks), flush=True)


def run(words):
    options = choices(words)
    if options.picture:
        picture.pyplot()
    if options.install_peers:
        install.debian(options.build_dir, say)
    if options.pypi_peers:
        install.pypi(options.venv, say)
    for part in ("bench/peers/tutti-peers-tutti", "bench/peers/tutti-peers-probe", "tools/tuttirun/tuttirun"):
        if not (options.build_dir / part).exists():
            raise PeerError(f"{options.build_dir / part} is not there: meson setup build -Dbench=enabled -Dtools=enabled && "
                            "ninja -C build, or give --build-dir")
    options.build_dir = options.build_dir.resolve()
    peers = peers_of(options)
    if options.list:
        print("\n".join(f"{peer.name:<12} {peer.medium}" for peer in peers) or "no peers")
        return 0
    busy = busy_cpus()
    if busy is not None and busy > 0.2:
        say(f"compare-peers: other programs use {busy:.1f} CPUs: what follows is disturbed; end them, or measure elsewhere")
    all_measured, rows, code = [], [], 0
    facts = {"versions": {}, "arguments": words, "cpus": sorted(os.sched_getaffinity(0)), "split_ns": options.split_ns,
             "busy_cpus_before": busy}
    start = time.monotonic()
    try:
        if options.startup:
            measure_startup(options, peers, rows)
        else:
            measure_all(options, peers, all_measured, facts)
    except KeyboardInterrupt:
        say("compare-peers: interrupted; what there is follows")
        code = 130
    facts["seconds"] = time.monotonic() - start
    document = startup.document(rows, facts) if options.startup else report.document(all_measured, facts)
    if not options.startup:
        print("\n".join(report.summary_lines(document["summary"])))
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if options.picture and all_measured and document["rows"]:
        picture.draw(document["rows"], options.picture)
    return code


def interrupted(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # timeout(1) sends two; the second must not break the clearing up
    raise KeyboardInterrupt


def main(words):
    signal.signal(signal.SIGTERM, interrupted)  # as Ctrl-C: the jobs and their folders go
    try:
        return run(words)
    except TuttiError as error:
        say(f"compare-peers: {error}")
        return 1
    except (PeerError, OSError) as error:
        say(f"compare-peers: {error}")
        return 2
