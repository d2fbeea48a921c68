# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""What is printed, and the same as JSON."""

import dataclasses
import math
import statistics

from . import pairing

HEAD = (f"{'collective':<15}{'ranks':>5} {'medium':<6} {'size':>6} {'cpus':<5}{'Tutti us':>10}{'min':>10}{'peer us':>10}{'min':>10}"
        f"  {'best peer':<12}{'ratio':>6}  {'95 % interval':<15}{'pairs':>5}")


def size_word(size_bytes):
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size_bytes >= 1 << shift and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift}{unit}"
    return str(size_bytes)


def number(value):
    return "-" if math.isnan(value) else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def lines_of(measured):
    """A line for each distance at which there are pairs; Tutti alone where no peer was measured."""
    point = measured.point
    start = f"{point.collective:<15}{point.ranks:>5} {point.medium:<6} {size_word(point.size_bytes):>6} "
    if not measured.judged:
        times = measured.slices.get("tutti", [])
        middle = statistics.median(piece.median_us for piece in times) if times else math.nan
        best = min((piece.min_us for piece in times), default=math.nan)
        return [f"{start}{'-':<5}{number(middle):>10}{number(best):>10}{'-':>10}{'-':>10}  {'no pairs':<12}"]
    lines = []
    for distance, comparisons in measured.judged.items():
        best = comparisons[0]
        interval = "too few pairs" if math.isnan(best.low) else f"{best.low:.2f} .. {best.high:.2f}"
        lines.append(f"{start}{distance:<5}{number(best.tutti_us):>10}{number(best.tutti_min_us):>10}{number(best.peer_us):>10}"
                     f"{number(best.peer_min_us):>10}  {best.peer:<12}{best.ratio:>6.2f}  {interval:<15}{best.pair_count:>5}")
    return lines


def rows_of(all_measured):
    """The judged lines as plain data, the best peer's figures in each; `others` are the other peers."""
    rows = []
    for measured in all_measured:
        for distance, comparisons in measured.judged.items():
            best, *others = [dataclasses.asdict(one) for one in comparisons]
            rows.append({**dataclasses.asdict(measured.point), "distance": distance, **best, "others": others})
    return rows


def summary_of(rows):
    """Geometric means, the worst point, the ten worst. None where there is nothing to say."""
    short = ("collective", "ranks", "medium", "size_bytes", "distance", "peer", "ratio", "low", "high", "tutti_us", "peer_us")
    worst = [{key: row[key] for key in short} for row in sorted(rows, key=lambda row: row["ratio"])[:10]]
    groups = {}
    for row in rows:
        groups.setdefault(f"{row['medium']}, {row['ranks']} ranks, {row['distance']}", []).append(row["ratio"])
    return {
        "points": len(rows),
        "behind": sum(row["ratio"] < 1 for row in rows),
        "geometric_mean": pairing.geometric_mean(row["ratio"] for row in rows),
        "geometric_means": {key: pairing.geometric_mean(ratios) for key, ratios in sorted(groups.items())},
        "worst_point": worst[0] if worst else None,
        "worst_ratio": worst[0]["ratio"] if worst else None,
        "ten_worst": worst,
    }


def summary_lines(summary):
    if not summary["points"]:
        return ["No peer was compared: there is no ratio."]
    lines = ["", "Ratio: best peer's time / Tutti's; above 1, Tutti is faster.", "Geometric means:"]
    lines += [f"  {key:<24}{value:.2f}" for key, value in summary["geometric_means"].items()]
    lines.append(f"  {'all ' + str(summary['points']):<24}{summary['geometric_mean']:.2f}   ({summary['behind']} points below 1)")
    lines.append("Ten worst points:")
    for row in summary["ten_worst"]:
        lines.append(f"  {row['ratio']:.2f}  {row['collective']} {size_word(row['size_bytes'])}, {row['ranks']} ranks, {row['medium']}, "
                     f"{row['distance']}: {number(row['tutti_us'])} us, {row['peer']} {number(row['peer_us'])} us")
    return lines


def without_nan(data):
    """JSON has no NaN."""
    if isinstance(data, dict):
        return {key: without_nan(value) for key, value in data.items()}
    if isinstance(data, list):
        return [without_nan(value) for value in data]
    return None if isinstance(data, float) and math.isnan(data) else data


def document(all_measured, facts):
    """Everything, with the slices, to look at again. `facts` goes in as it is."""
    rows = rows_of(all_measured)
    points = [{"point": dataclasses.asdict(measured.point), "dropped": measured.dropped,
               "slices": {name: [dataclasses.asdict(piece) for piece in pieces] for name, pieces in measured.slices.items()}}
              for measured in all_measured]
    return without_nan({"summary": summary_of(rows), **facts, "rows": rows, "points": points})
