# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Slices, which of them may be compared, and what their pairs say."""

import dataclasses
import math
import statistics

SPLIT_NS = 300.0  # between the round trips of near and far CPUs
MAX_GAP_S = 30.0  # slices farther apart in time are no pair


@dataclasses.dataclass
class Slice:
    """One contender's turn at one point: the time of a call, max over ranks, as the median and minimum of its repeats."""
    contender: str
    at_s: float
    before_ns: float
    after_ns: float
    median_us: float
    min_us: float

    def distance(self, split_ns=SPLIT_NS):
        """"near" or "far", or "mixed" if the CPUs moved meanwhile."""
        before, after = self.before_ns < split_ns, self.after_ns < split_ns
        return "mixed" if before != after else "near" if before else "far"


def max_over_ranks(per_rank):
    """Per repeat the slowest rank's time."""
    return [max(times) for times in zip(*per_rank)]


def pairs(ours, theirs, max_gap_s=MAX_GAP_S):
    """One-to-one, nearest in time first. Both lists are of one point and one distance. Returns [(ours, theirs)] in time order."""
    gaps = sorted((abs(mine.at_s - other.at_s), mine_index, other_index)
                  for mine_index, mine in enumerate(ours) for other_index, other in enumerate(theirs))
    used_ours, used_theirs, result = set(), set(), []
    for gap_s, mine_index, other_index in gaps:
        if gap_s > max_gap_s:
            break
        if mine_index in used_ours or other_index in used_theirs:
            continue
        used_ours.add(mine_index)
        used_theirs.add(other_index)
        result.append((ours[mine_index], theirs[other_index]))
    return sorted(result, key=lambda pair: pair[0].at_s)


def interval_of_median(values, confidence=0.95):
    """The order statistics between which the median of the population lies with at least this confidence, whatever its shape.
    None if there are too few values for any (fewer than 6 for 95 %)."""
    ordered, count = sorted(values), len(values)
    below, tail = -1, 0.0
    while below + 1 < count / 2:
        following = tail + math.comb(count, below + 1) / 2.0 ** count
        if 2 * following > 1 - confidence:
            break
        below, tail = below + 1, following
    return (ordered[below], ordered[count - 1 - below]) if below >= 0 else None


def geometric_mean(values):
    """None of nothing."""
    values = list(values)
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else None


@dataclasses.dataclass
class Comparison:
    """A peer against Tutti at one point and distance. A ratio above 1: Tutti is faster."""
    peer: str
    pair_count: int
    ratio: float
    low: float  # nan, as high, if there are too few pairs
    high: float
    tutti_us: float
    tutti_min_us: float
    peer_us: float
    peer_min_us: float


def compare(peer, ours, theirs):
    """None if no slices make a pair."""
    found = pairs(ours, theirs)
    if not found:
        return None
    ratios = [other.median_us / mine.median_us for mine, other in found]
    low, high = interval_of_median(ratios) or (math.nan, math.nan)
    return Comparison(peer, len(found), statistics.median(ratios), low, high,
                      statistics.median(mine.median_us for mine, _ in found), min(mine.min_us for mine, _ in found),
                      statistics.median(other.median_us for _, other in found), min(other.min_us for _, other in found))


def by_distance(slices, separate, split_ns=SPLIT_NS):
    """{"near": [...], "far": [...]} without mixed slices; {"any": all} where ranks share CPUs and the distance says little."""
    if not separate:
        return {"any": list(slices)}
    result = {"near": [], "far": []}
    for piece in slices:
        distance = piece.distance(split_ns)
        if distance != "mixed":
            result[distance].append(piece)
    return result


def judge(tutti, peers, separate, split_ns=SPLIT_NS, min_pairs=1):
    """tutti: its slices at one point; peers: {name: slices}. Returns {distance: [Comparison, the best peer first]}: the best is the
    one with the lowest ratio, among those with at least min_pairs pairs if any has."""
    result = {}
    for distance, ours in by_distance(tutti, separate, split_ns).items():
        found = []
        for name, slices in peers.items():
            comparison = compare(name, ours, by_distance(slices, separate, split_ns)[distance])
            if comparison is not None:
                found.append(comparison)
        if found:
            result[distance] = sorted(found, key=lambda one: (one.pair_count < min_pairs, one.ratio))
    return result
