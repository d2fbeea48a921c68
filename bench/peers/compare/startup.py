# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""How long a job takes that only starts: launcher, joining, one barrier, end. All contenders in turn, round after round."""

import dataclasses
import shutil
import statistics
import subprocess
import time

from . import pairing, resident
from .session import TuttiError

TIMEOUT_S = 120
HEAD = f"{'ranks':>5}  {'contender':<12}{'ms':>9}{'min':>9}{'ratio':>7}  {'95 % interval':<15}{'runs':>5}"


@dataclasses.dataclass
class Row:
    """One contender's starts with so many ranks. A ratio above 1: Tutti is faster; Tutti's own is 1."""
    ranks: int
    contender: str
    median_ms: float
    min_ms: float
    ratio: float
    low: float | None  # None, as high, if there are too few rounds
    high: float | None
    times_ms: list


def one_of_each(contenders):
    """The first variant of each library and launcher: variants differ in what they do after the start."""
    firsts = {}
    for contender in contenders:
        firsts.setdefault((contender.binary, contender.command), contender)
    return list(firsts.values())


def start_once(contender, ranks):
    """Milliseconds from before the launcher's start to its end. PeerError if it fails or hangs; nothing of it lives on."""
    folder = resident.new_folder()
    line = [contender.binary] + ([contender.argument] if contender.argument else []) + ["start"]
    processes = []
    try:
        with open(folder / "log", "w+b") as log:
            begin = time.monotonic()
            processes = resident.launch(contender.name, ranks, contender.command, line,
                                        {**contender.environment, "PEERS_FOLDER": str(folder)}, log)
            codes = [process.wait(max(0.01, begin + TIMEOUT_S - time.monotonic())) for process in processes]
            took_ms = (time.monotonic() - begin) * 1e3
            if any(codes):
                words = resident.first_words(log) or f"exit code {max(codes)}"
                raise resident.PeerError(f"{contender.name}, {ranks} ranks: did not start: {words}")
            return took_ms
    except subprocess.TimeoutExpired:
        raise resident.PeerError(f"{contender.name}, {ranks} ranks: still not ended after {TIMEOUT_S} s") from None
    finally:
        resident.end(processes)
        shutil.rmtree(folder, ignore_errors=True)


def measure(contenders, ranks, rounds, start, say):
    """[Row], Tutti's first, then the fastest. start(contender, ranks) gives ms. One more round goes first and is not counted: it
    brings programs into memory. A peer that fails is told and left out; of Tutti's failure TuttiError comes."""
    times = {contender.name: [] for contender in contenders}
    living = list(contenders)
    for number in range(rounds + 1):
        turn = number % len(living)
        order = living[turn:] + living[:turn]
        for contender in order if number % 2 == 0 else order[::-1]:
            try:
                times[contender.name].append(start(contender, ranks))
            except resident.PeerError as error:
                if contender.name == "tutti":
                    raise TuttiError(str(error)) from error
                say(f"without {contender.name}: {error}")
                living.remove(contender)
                del times[contender.name]
    return rows_of({name: taken[1:] for name, taken in times.items()}, ranks)


def rows_of(times, ranks):
    """times: {contender: ms in each round}. What ran in the same round is a pair."""
    rows = []
    for name, taken in times.items():
        ratios = [theirs / ours for theirs, ours in zip(taken, times["tutti"])]
        low, high = pairing.interval_of_median(ratios) or (None, None)
        rows.append(Row(ranks, name, statistics.median(taken), min(taken), statistics.median(ratios), low, high, taken))
    return sorted(rows, key=lambda row: (row.contender != "tutti", row.median_ms))


def line_of(row):
    interval = "" if row.contender == "tutti" else "too few rounds" if row.low is None else f"{row.low:.2f} .. {row.high:.2f}"
    return (f"{row.ranks:>5}  {row.contender:<12}{row.median_ms:>9.1f}{row.min_ms:>9.1f}{row.ratio:>7.2f}  {interval:<15}"
            f"{len(row.times_ms):>5}")


def summary_of(rows):
    """None where no peer was measured."""
    peers = [row for row in rows if row.contender != "tutti"]
    nearest = [min(row.ratio for row in peers if row.ranks == ranks) for ranks in sorted({row.ranks for row in peers})]
    worst = min(peers, key=lambda row: row.ratio, default=None)
    return {
        "tutti_median_ms": {str(row.ranks): row.median_ms for row in rows if row.contender == "tutti"},
        "behind": sum(row.ratio < 1 for row in peers),
        "geometric_mean": pairing.geometric_mean(nearest),
        "worst_ratio": worst and worst.ratio,
        "worst_point": worst and {"ranks": worst.ranks, "peer": worst.contender, "peer_ms": worst.median_ms},
    }


def document(rows, facts):
    return {"summary": {"startup": summary_of(rows)}, **facts, "startup": [dataclasses.asdict(row) for row in rows]}
