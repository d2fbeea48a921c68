# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Measures points: all contenders of a point take turns of one slice each, in an order that changes from round to round."""

import dataclasses
import statistics
import time

from . import pairing
from .resident import Lacking, PeerError, Resident

REPEATS = 5  # of which a slice has, if the calls are short enough
LONG_US = 1e6  # a call that takes longer is not repeated to find its best
CALIBRATING = 0.25  # of a slice's length: what finds the number of calls, or says again that a peer is far behind
RACE_ROUNDS, RACERS = 3, 3  # after so many rounds only the peers go on that were among the best so many, at either distance
CONFIRMING = 3  # slices that say again that a peer is far behind: one may have been disturbed


class TuttiError(PeerError):
    """What made it impossible to measure Tutti itself, or a wrong result of it."""


@dataclasses.dataclass(frozen=True)
class Point:
    collective: str
    ranks: int
    medium: str
    size_bytes: int

    def __str__(self):
        return f"{self.collective} {self.size_bytes} B, {self.ranks} ranks, {self.medium}"


@dataclasses.dataclass
class Measured:
    """What came of a point. slices: {contender: [Slice]}; dropped: {contender: why it took no (further) part}."""
    point: Point
    slices: dict
    dropped: dict
    judged: dict


def plan_of(call_us, slice_ms):
    """(iterations, repeats) of a slice of about slice_ms, of which an eighth of each repeat is warm-up."""
    calls = max(1.0, slice_ms * 1e3 / max(call_us, 0.01) / 1.1)
    repeats = max(1, min(REPEATS, int(calls)))
    return max(1, int(calls / repeats)), repeats


class Group:
    """The living jobs of one number of ranks and one medium."""

    def __init__(self, contenders, ranks, cpus, say):
        self.jobs, self.failed, self.starting = {}, {}, {}
        try:
            self.start(contenders, ranks, cpus, say)
        except BaseException:
            self.stop()
            raise

    def start(self, contenders, ranks, cpus, say):
        """All at once; those that do not start are told."""
        for contender in contenders:
            try:
                self.starting[contender.name] = Resident(contender.name, ranks, cpus, contender.binary, contender.command,
                                                         contender.environment, contender.argument)
            except PeerError as error:
                self.fail(contender.name, error, say)
        for name in list(self.starting):
            job = self.starting[name]
            try:
                job.wait_ready()
                self.jobs[name] = job
            except PeerError as error:
                job.stop()
                self.fail(name, error, say)
            del self.starting[name]

    def fail(self, name, error, say):
        self.failed[name] = str(error)
        job = self.jobs.pop(name, None)
        if job is not None:
            job.stop()
        say(f"without {name}: {error}")
        if name == "tutti":
            raise TuttiError(str(error)) from error

    def stop(self):
        for job in [*self.jobs.values(), *self.starting.values()]:
            job.stop()


class Session:
    """probe: distance_ns(); say: called with a line for the user."""

    def __init__(self, probe, options, cpu_count, say):
        self.probe, self.options, self.cpu_count, self.say = probe, options, cpu_count, say
        self.behind = {}  # (collective, ranks, medium, contender) -> why it sits out larger sizes

    def slice_of(self, job, point, iterations, repeats):
        before = self.probe.distance_ns()
        at = time.monotonic()
        answers = job.ask(f"{point.collective} {point.size_bytes} {iterations} {repeats}")
        after = self.probe.distance_ns()
        times = [ns / 1e3 for ns in pairing.max_over_ranks([answer["ns"] for answer in answers])]
        return pairing.Slice(job.name, at, before, after, statistics.median(times), min(times))

    def calibrate(self, job, point):
        """Checks the results, then finds how many calls make a slice. Returns (iterations, repeats, us of a call at best)."""
        wrong = sum(answer["wrong"] for answer in job.ask(f"check {point.collective} {point.size_bytes}"))
        if wrong:
            raise PeerError(f"{job.name}: {point}: {wrong} wrong elements")
        call_us, iterations = 0.0, 1
        while True:
            call_us = self.slice_of(job, point, iterations, 1).median_us
            if iterations * call_us * 8 > self.options.slice_ms * 1e3 or iterations > 1e5:
                if call_us < LONG_US:
                    call_us = min(call_us, self.short_us(job, point, call_us))
                return (*plan_of(call_us, self.options.slice_ms), call_us)
            iterations = max(iterations * 4, int(self.options.slice_ms * 1e3 / 6 / max(call_us, 0.01) / 4))

    def short_us(self, job, point, call_us):
        """The best repeat of a short slice."""
        return self.slice_of(job, point, *plan_of(call_us, self.options.slice_ms * CALIBRATING)).min_us

    def field(self, group, point, dropped):
        """{name: (iterations, repeats)} of those that can win."""
        plans, call_us = {}, {}
        for name in list(group.jobs):
            key = (point.collective, point.ranks, point.medium, name)
            if key in self.behind:
                dropped[name] = self.behind[key]
                continue
            try:
                *plan, call_us[name] = self.calibrate(group.jobs[name], point)
                plans[name] = plan
            except Lacking as error:
                dropped[name] = str(error)
            except PeerError as error:
                dropped[name] = str(error)
                group.fail(name, error, self.say)
        self.leave_behind(group, point, plans, call_us, dropped)
        return plans

    def leave_behind(self, group, point, plans, call_us, dropped):
        """Takes out of `plans` the peers that are give_up times slower than the best, by their best repeats of several slices."""
        best_us = min((us for name, us in call_us.items() if name != "tutti"), default=0.0)
        limit_us = self.options.give_up * best_us
        for name, us in call_us.items():
            if name == "tutti" or limit_us == 0:
                continue
            try:
                for _ in range(CONFIRMING if us < LONG_US else 0):
                    if us > limit_us:
                        us = min(us, self.short_us(group.jobs[name], point, us))
            except PeerError as error:
                dropped[name] = f"{error} ({point})"
                group.fail(name, error, self.say)
                del plans[name]
                continue
            if us <= limit_us:
                continue
            dropped[name] = f"{us:.0f} us, over {self.options.give_up:g} times the best peer's {best_us:.2g} us at {point.size_bytes} B"
            if us > 50 * best_us or us > 1e5:  # no larger size will put that right, and each costs seconds
                self.behind[(point.collective, point.ranks, point.medium, name)] = dropped[name]
            del plans[name]

    def measure(self, group, point, until_s):
        dropped = dict(group.failed)
        plans = self.field(group, point, dropped)
        slices = {name: [] for name in plans}
        separate = point.ranks <= self.cpu_count
        names, rounds = list(plans), 0
        while names and rounds < self.options.max_rounds:
            # Tutti is in turn before and after each peer, over the rounds.
            turn = rounds % len(names)
            order = names[turn:] + names[:turn]
            for name in order if rounds % 2 == 0 else order[::-1]:
                self.take_turn(group, name, point, plans[name], slices, dropped)
            names = [name for name in names if name in group.jobs]
            rounds += 1
            if rounds == RACE_ROUNDS:
                names = self.racers(slices, separate)
            if time.monotonic() > until_s and rounds >= self.options.min_rounds:
                break
            if rounds >= self.options.pairs and self.enough({name: slices[name] for name in names}, separate):
                break
        slices = {name: pieces for name, pieces in slices.items() if name in group.jobs}
        judged = self.judge(slices, separate, min(self.options.pairs, RACE_ROUNDS + 1))
        return Measured(point, slices, dropped, judged)

    def take_turn(self, group, name, point, plan, slices, dropped):
        """Adds a slice. A peer that hangs or dies meanwhile is out, and its slices of this point do not count; Tutti's error is raised."""
        if name not in group.jobs:
            return
        try:
            slices[name].append(self.slice_of(group.jobs[name], point, *plan))
        except PeerError as error:
            dropped[name] = f"{error} ({point})"
            group.fail(name, PeerError(dropped[name]), self.say)

    def judge(self, slices, separate, min_pairs):
        peers = {name: pieces for name, pieces in slices.items() if name != "tutti"}
        return pairing.judge(slices["tutti"], peers, separate, self.options.split_ns, min_pairs)

    def racers(self, slices, separate):
        """Tutti and the peers that may turn out to be the best; those that lost stay in the table with the pairs that they have."""
        judged = self.judge(slices, separate, 1)
        best = {one.peer for comparisons in judged.values() for one in comparisons[:RACERS]}
        return [name for name in slices if name == "tutti" or not judged or name in best]

    def enough(self, slices, separate):
        """Every peer has its pairs at one distance at least."""
        ours = pairing.by_distance(slices["tutti"], separate, self.options.split_ns)
        for name, pieces in slices.items():
            theirs = pairing.by_distance(pieces, separate, self.options.split_ns)
            if name != "tutti" and all(min(len(ours[key]), len(theirs[key])) < self.options.pairs for key in ours):
                return False
        return True
