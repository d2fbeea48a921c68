#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""test_statistics.py SOURCE_ROOT: pairing, intervals, mixed slices, what is left out, the summary."""

import math
import os
import sys
import types
import unittest

ROOT = sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
from compare import cli, contenders, pairing, report, session, startup  # noqa: E402
from compare.resident import Lacking, PeerError  # noqa: E402

NEAR, FAR = 110.0, 500.0


def piece(at_s, us, before=NEAR, after=NEAR, name="x"):
    return pairing.Slice(name, at_s, before, after, us, us / 2)


class Pairing(unittest.TestCase):
    def test_nearest_first_and_each_once(self):
        ours = [piece(0, 1), piece(10, 1)]
        theirs = [piece(9, 2), piece(11.5, 3)]
        self.assertEqual([(mine.at_s, other.at_s) for mine, other in pairing.pairs(ours, theirs)], [(0, 11.5), (10, 9)])

    def test_far_apart_in_time_is_no_pair(self):
        self.assertEqual(pairing.pairs([piece(0, 1)], [piece(31, 1)]), [])

    def test_mixed_slices_are_dropped_and_distances_kept_apart(self):
        slices = [piece(0, 1), piece(1, 5, FAR, FAR), piece(2, 3, NEAR, FAR), piece(3, 3, FAR, NEAR)]
        found = pairing.by_distance(slices, True)
        self.assertEqual({key: [one.at_s for one in value] for key, value in found.items()}, {"near": [0], "far": [1]})
        self.assertEqual(len(pairing.by_distance(slices, False)["any"]), 4)

    def test_near_is_never_compared_with_far(self):
        ours = [piece(0, 1.0), piece(1, 4.0, FAR, FAR)]
        theirs = {"peer": [piece(0.1, 2.0), piece(1.1, 6.0, FAR, FAR)]}
        judged = pairing.judge(ours, theirs, True)
        self.assertEqual({key: one[0].ratio for key, one in judged.items()}, {"near": 2.0, "far": 1.5})

    def test_the_ratio_is_of_pairs_not_of_medians(self):
        # The machine slows down by ten half-way: each pair says 2, whatever the medians say.
        ours = [piece(0, 1), piece(1, 10), piece(2, 10)]
        theirs = [piece(0.1, 2), piece(1.1, 20), piece(2.1, 20)]
        self.assertEqual(pairing.compare("peer", ours, theirs).ratio, 2.0)

    def test_the_best_peer_has_enough_pairs(self):
        ours = [piece(at, 1) for at in range(6)]
        peers = {"lucky": [piece(0.1, 0.5)], "steady": [piece(at + 0.2, 3) for at in range(6)], "slow": [piece(at, 9) for at in range(6)]}
        self.assertEqual([one.peer for one in pairing.judge(ours, peers, True, min_pairs=6)["near"]], ["steady", "slow", "lucky"])

    def test_the_slowest_rank_counts(self):
        self.assertEqual(pairing.max_over_ranks([[1, 5], [3, 2]]), [3, 5])


class Intervals(unittest.TestCase):
    def test_order_statistics(self):
        # Known ranks of the 95 % interval: 6: 1..6, 9: 2..8, 15: 4..12, 25: 8..18.
        for count, low, high in ((6, 1, 6), (9, 2, 8), (15, 4, 12), (25, 8, 18)):
            self.assertEqual(pairing.interval_of_median(list(range(count, 0, -1))), (low, high), count)

    def test_too_few(self):
        self.assertIsNone(pairing.interval_of_median([1, 2, 3, 4, 5]))
        self.assertTrue(math.isnan(pairing.compare("peer", [piece(0, 1)], [piece(0, 2)]).low))

    def test_geometric_mean(self):
        self.assertAlmostEqual(pairing.geometric_mean([0.5, 2.0, 8.0]), 2.0)
        self.assertIsNone(pairing.geometric_mean([]))


class FakeJob:
    """Answers as a job would whose calls take `us`."""

    def __init__(self, name, us, wrong=0, error=None, disturbed=0, turns=10000):
        self.turns_left = turns
        self.name, self.us, self.wrong, self.error, self.asked, self.stopped = name, us, wrong, error, [], False
        self.disturbed = disturbed  # slices that take a thousand times as long

    def ask(self, command):
        self.asked.append(command)
        if self.error:
            raise self.error
        if command.startswith("check"):
            return [{"rank": 0, "wrong": 0}, {"rank": 1, "wrong": self.wrong}]
        repeats = int(command.split()[3])
        self.turns_left -= 1
        if self.turns_left < 0:
            raise PeerError(f"{self.name}: no answer within 30 s")
        self.disturbed -= 1
        us = self.us * (1000 if self.disturbed >= 0 else 1)
        return [{"ns": [us * 500] * repeats}, {"ns": [us * 1000] * repeats}]

    def stop(self):
        self.stopped = True


def measured(jobs, ranks=2, give_up=10.0, session_of=None, size=8):
    options = types.SimpleNamespace(slice_ms=50.0, give_up=give_up, pairs=6, min_rounds=3, max_rounds=12, split_ns=300.0)
    probe = types.SimpleNamespace(distance_ns=lambda: NEAR)
    one = session_of or session.Session(probe, options, 2, lambda line: None)
    group = session.Group([], ranks, [], lambda line: None)
    group.jobs = {job.name: job for job in jobs}
    return one, group, one.measure(group, session.Point("allreduce", ranks, "shm", size), float("inf"))


class Measuring(unittest.TestCase):
    def test_slices_fill_their_time(self):
        for us in (0.1, 1.0, 77.0, 5000.0, 49000.0):
            iterations, repeats = session.plan_of(us, 50)
            self.assertLessEqual(us * iterations * repeats, 50e3)
            self.assertGreater(us * iterations * repeats, 15e3)
        self.assertEqual(session.plan_of(3e6, 50), (1, 1))

    def test_ratio_and_turns(self):
        _, _, result = measured([FakeJob("tutti", 2.0), FakeJob("slow", 8.0), FakeJob("fast", 3.0)])
        best = result.judged["near"][0]
        self.assertEqual((best.peer, best.ratio, best.tutti_us, best.pair_count), ("fast", 1.5, 2.0, 6))

    def test_one_far_behind_is_left_out_and_said(self):
        one, group, result = measured([FakeJob("tutti", 2.0), FakeJob("fast", 3.0), FakeJob("hopeless", 900.0)])
        self.assertNotIn("hopeless", result.slices)
        self.assertIn("900 us", result.dropped["hopeless"])
        asked = len(group.jobs["hopeless"].asked)
        _, _, larger = measured(group.jobs.values(), session_of=one, size=4096)
        self.assertEqual(len(group.jobs["hopeless"].asked), asked)
        self.assertIn("hopeless", larger.dropped)
        _, _, kept = measured([FakeJob("tutti", 2.0), FakeJob("fast", 3.0), FakeJob("hopeless", 900.0)], give_up=0)
        self.assertIn("hopeless", kept.slices)

    def test_a_disturbed_start_leaves_nobody_out(self):
        for disturbed in (1, 2, 3):
            _, _, result = measured([FakeJob("tutti", 2.0), FakeJob("fast", 3.0), FakeJob("unlucky", 2.5, disturbed=disturbed)])
            self.assertEqual(result.judged["near"][0].peer, "unlucky")

    def test_after_some_rounds_the_best_go_on(self):
        _, _, result = measured([FakeJob("tutti", 2.0)] + [FakeJob(f"peer-{us}", us) for us in (3.0, 7.0, 5.0, 4.0, 6.0)])
        self.assertEqual({name: len(pieces) for name, pieces in result.slices.items()},
                         {"tutti": 6, "peer-3.0": 6, "peer-4.0": 6, "peer-5.0": 6, "peer-6.0": 3, "peer-7.0": 3})
        self.assertEqual([one.peer for one in result.judged["near"]][0], "peer-3.0")

    def test_one_that_hangs_is_out_and_the_others_go_on(self):
        for turns in range(9):
            one, group, result = measured([FakeJob("tutti", 2.0), FakeJob("hangs", 1.0, turns=turns), FakeJob("fast", 3.0)])
            self.assertIn("no answer", result.dropped["hangs"])
            self.assertEqual([one.peer for one in result.judged["near"]], ["fast"])
            self.assertEqual(len(result.slices["tutti"]), 6)
            self.assertNotIn("hangs", group.jobs)
            _, group, result = measured(group.jobs.values(), session_of=one, size=4096)
        with self.assertRaises(session.TuttiError):
            measured([FakeJob("tutti", 2.0, turns=8), FakeJob("fast", 3.0)])

    def test_tutti_is_never_left_out(self):
        _, _, result = measured([FakeJob("tutti", 900.0), FakeJob("fast", 3.0)])
        self.assertAlmostEqual(result.judged["near"][0].ratio, 3.0 / 900.0)

    def test_wrong_results_end_a_peer_and_fail_tutti(self):
        bad = FakeJob("bad", 1.0, wrong=4)
        _, group, result = measured([FakeJob("tutti", 2.0), FakeJob("fast", 3.0), bad])
        self.assertIn("4 wrong elements", result.dropped["bad"])
        self.assertTrue(bad.stopped)
        self.assertNotIn("bad", group.jobs)
        with self.assertRaises(session.TuttiError):
            measured([FakeJob("tutti", 2.0, wrong=1), FakeJob("fast", 3.0)])

    def test_what_a_library_lacks_is_no_failure(self):
        lacking = FakeJob("lacking", 1.0, error=Lacking("lacking: this library has no reduce"))
        _, group, result = measured([FakeJob("tutti", 2.0), lacking])
        self.assertIn("lacking", group.jobs)
        self.assertIn("lacking", result.dropped)


def contender(name, binary="p", command=("run",)):
    return contenders.Contender(name, "shm", binary, command, {})


class Starting(unittest.TestCase):
    def measured(self, ms, rounds=6, failing=()):
        """ms: {name: a function of the round}. Returns (rows, [name in the order of starts], what was said)."""
        order, said = [], []

        def start(one, ranks):
            order.append(one.name)
            if one.name in failing and order.count(one.name) > failing[one.name]:
                raise PeerError(f"{one.name}: no")
            return ms[one.name](order.count(one.name) - 1) * ranks
        return startup.measure([contender(name) for name in ms], 2, rounds, start, said.append), order, said

    def test_the_first_round_does_not_count_and_pairs_are_of_one_round(self):
        # The machine slows down by ten half-way: each round says 3. The first, with the programs still on the disk, would say 30.
        rows, _, _ = self.measured({"tutti": lambda turn: 10.0 if turn > 3 else 1.0,
                                    "peer": lambda turn: 30.0 if turn > 3 or turn == 0 else 3.0})
        ours, peer = rows
        self.assertEqual((ours.contender, ours.ratio, ours.min_ms, ours.median_ms, len(ours.times_ms)), ("tutti", 1.0, 2.0, 11.0, 6))
        self.assertEqual((peer.ratio, peer.low, peer.high, peer.min_ms), (3.0, 3.0, 3.0, 6.0))

    def test_turns(self):
        _, order, _ = self.measured({"tutti": lambda _: 1, "a": lambda _: 2, "b": lambda _: 3}, rounds=2)
        self.assertEqual(order, ["tutti", "a", "b", "tutti", "b", "a", "b", "tutti", "a"])

    def test_a_peer_that_fails_is_out_and_tutti_that_fails_ends_it(self):
        for starts in (0, 3):
            rows, order, said = self.measured({"tutti": lambda _: 1, "bad": lambda _: 2, "good": lambda _: 3}, failing={"bad": starts})
            self.assertEqual([row.contender for row in rows], ["tutti", "good"])
            self.assertEqual([len(row.times_ms) for row in rows], [6, 6])
            self.assertEqual((order.count("bad"), said), (starts + 1, ["without bad: bad: no"]))
        with self.assertRaises(session.TuttiError):
            self.measured({"tutti": lambda _: 1, "good": lambda _: 3}, failing={"tutti": 2})

    def test_one_variant_of_each_library(self):
        found = startup.one_of_each([contender("a1", "a"), contender("a2", "a"), contender("b", "b"), contender("a5", "a", ("other",))])
        self.assertEqual([one.name for one in found], ["a1", "b", "a5"])

    def test_summary(self):
        rows, _, _ = self.measured({"tutti": lambda _: 2, "slow": lambda _: 8, "fast": lambda _: 1})
        document = startup.document(rows, {"versions": {}})
        summary = document["summary"]["startup"]
        self.assertEqual((summary["behind"], summary["worst_ratio"], summary["worst_point"]["peer"]), (1, 0.5, "fast"))
        self.assertAlmostEqual(summary["geometric_mean"], 0.5)
        self.assertEqual([row["contender"] for row in document["startup"]], ["tutti", "fast", "slow"])
        self.assertIn("0.50 .. 0.50", startup.line_of(rows[1]))
        self.assertIsNone(startup.summary_of(self.measured({"tutti": lambda _: 1})[0])["worst_ratio"])

    def test_it_has_its_own_numbers_of_ranks_and_no_sizes(self):
        self.assertEqual(cli.choices(["--startup"]).ranks, [2, 8, 32, 64])
        self.assertEqual(cli.choices(["--startup", "--ranks", "3"]).ranks, [3])
        with self.assertRaisesRegex(PeerError, "leave out --sizes"):
            cli.choices(["--startup", "--sizes", "8"])


class Reporting(unittest.TestCase):
    def test_summary(self):
        rows = []
        for size, us in ((8, 1.0), (64, 4.0)):
            _, _, result = measured([FakeJob("tutti", 2.0), FakeJob("peer", us)], size=size)
            rows.append(result)
        document = report.document(rows, {"versions": {}})
        summary = document["summary"]
        self.assertAlmostEqual(summary["geometric_mean"], 1.0)
        self.assertEqual((summary["points"], summary["behind"], summary["worst_ratio"]), (2, 1, 0.5))
        self.assertEqual(summary["worst_point"]["size_bytes"], 8)
        self.assertIn("0.50", report.lines_of(rows[0])[0])
        self.assertTrue(any("0.50  allreduce 8, 2 ranks, shm, near" in line for line in report.summary_lines(summary)))

    def test_nothing_to_say(self):
        self.assertIsNone(report.document([], {})["summary"]["geometric_mean"])

    def test_sizes(self):
        self.assertEqual([report.size_word(size) for size in (8, 4096, 1 << 20, 1025)], ["8", "4K", "1M", "1025"])


class Choosing(unittest.TestCase):
    def test_quick_is_fixed_and_may_be_narrowed(self):
        options = cli.choices(["--quick", "--ranks", "2"])
        self.assertEqual((options.ranks, options.sizes, options.collectives),
                         ([2], [8, 4096, 262144, 16777216], ["allreduce", "broadcast", "alltoall"]))

    def test_names_are_unique(self):
        names = [variant[0] for variant in contenders.VARIANTS]
        self.assertEqual(len(names), len(set(names)))

    def test_yielding_is_for_shared_processors(self):
        self.assertFalse(contenders.takes_part("mpich-yield", 2, 2))
        self.assertTrue(contenders.takes_part("mpich-yield", 4, 2))


unittest.main(argv=sys.argv[:1])
