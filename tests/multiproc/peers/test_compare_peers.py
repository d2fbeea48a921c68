#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""test_compare_peers.py SOURCE_ROOT BUILD FAKE: the whole command on a tiny comparison, with Tutti and one peer if there is any."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT, BUILD, FAKE = (os.path.abspath(path) for path in sys.argv[1:4])
sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
from compare import contenders, picture, startup  # noqa: E402
from compare.resident import Lacking, PeerError, Probe, Resident  # noqa: E402


def compare_peers(*words, **variables):
    return subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tools", "compare-peers"), "--build-dir", BUILD, *words],
                          capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **variables})


def cpu_seconds(job):
    """Of all processes of a job: those that have its folder in their environment."""
    ticks, marker = 0, f"PEERS_FOLDER={job.folder}".encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if marker in (process / "environ").read_bytes().split(b"\0"):
                fields = (process / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


class Command(unittest.TestCase):
    def test_a_tiny_comparison(self):
        listed = compare_peers("--list")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        peers = [line.split()[0] for line in listed.stdout.splitlines() if line.endswith(" shm")][:1]
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "out.json")
            done = compare_peers("--ranks", "2", "--media", "shm", "--collectives", "allreduce,gather,barrier", "--sizes", "8,1K",
                                 "--pairs", "2", "--slice-ms", "3", "--peers", peers[0] if peers else "none", "--json", file)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            with open(file, encoding="utf-8") as text:
                document = json.load(text)
        points = [(one["point"]["collective"], one["point"]["size_bytes"]) for one in document["points"]]
        self.assertEqual(points, [("allreduce", 8), ("allreduce", 1024), ("gather", 8), ("gather", 1024), ("barrier", 0)])
        for one in document["points"]:
            self.assertGreaterEqual(len(one["slices"]["tutti"]), 2)
            for piece in one["slices"]["tutti"]:
                self.assertGreater(piece["median_us"], 0.02)
                self.assertLessEqual(piece["min_us"], piece["median_us"])
        self.assertIn("Tutti 0.", document["versions"]["tutti"])
        if peers:
            self.assertIn(peers[0], document["versions"])
            self.assertEqual(document["summary"]["points"], len(document["rows"]))

    def test_starts(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "out.json")
            done = compare_peers("--startup", "--ranks", "2,3", "--pairs", "2", "--peers", "none", "--json", file)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            with open(file, encoding="utf-8") as text:
                rows = json.load(text)["startup"]
        self.assertEqual([(row["ranks"], row["contender"], len(row["times_ms"])) for row in rows], [(2, "tutti", 2), (3, "tutti", 2)])
        for row in rows:
            self.assertGreater(row["min_ms"], 1)  # two processes at the least
        done = compare_peers("--startup", "--ranks", "2", "--pairs", "1", "--peers", "none", TUTTI_LOG_LEVEL="shout")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("2 ranks: did not start", done.stderr)
        self.assertIn("shout", done.stderr)

    def test_a_start_without_a_launcher(self):
        found, _ = contenders.find(pathlib.Path(BUILD))
        for one in [one for one in found if not one.command][:1]:
            self.assertGreater(startup.start_once(one, 2), 1)
        with self.assertRaisesRegex(PeerError, "ghost: /nonexistent: No such file"):
            startup.start_once(contenders.Contender("ghost", "shm", "/nonexistent", (), {}), 2)

    def test_an_end_by_signal_reports_and_leaves_nothing(self):
        before = set(pathlib.Path("/dev/shm").glob("tutti-peers.*"))
        running = subprocess.Popen([sys.executable, "-B", os.path.join(ROOT, "tools", "compare-peers"), "--build-dir", BUILD, "--peers",
                                    "none", "--ranks", "2", "--media", "shm"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        head = running.stdout.readline() + running.stdout.readline()
        running.terminate()
        running.terminate()
        rest, _ = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130)
        self.assertIn("allreduce", head)
        self.assertIn("No peer was compared", rest)
        self.assertEqual(set(pathlib.Path("/dev/shm").glob("tutti-peers.*")) - before, set())

    def test_arguments_are_explained(self):
        for words, expected in ((["--sizes", "8,fast"], "'fast' is no size"), (["--ranks", "1"], "'1' is no number of ranks"),
                                (["--collectives", "allredcue"], "'allredcue' is none of allreduce"),
                                (["--peers", "nobody"], "--peers nobody: not there"), (["--pairs", "0"], "--pairs 0"),
                                (["--slice-ms", "-1"], "'-1' is no number above 0")):
            done = compare_peers(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(expected, done.stderr)
        done = compare_peers("--build-dir", "/nonexistent")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent/bench/peers/tutti-peers-tutti is not there: meson setup", done.stderr)

    def test_tutti_that_does_not_start_is_exit_code_1(self):
        done = compare_peers("--peers", "none", "--ranks", "2", "--media", "shm", TUTTI_LOG_LEVEL="shout")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("shout", done.stderr)

    def test_a_picture_or_why_there_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "curves.svg"
            if importlib.util.find_spec("matplotlib") is None:
                done = compare_peers("--picture", str(file))
                self.assertEqual(done.returncode, 2)
                self.assertIn("--picture needs matplotlib: apt-get install", done.stderr)
                return
            row = {"collective": "allreduce", "ranks": 2, "medium": "shm", "distance": "near", "tutti_us": 1.0, "peer": "other",
                   "peer_us": 2.0, "others": []}
            picture.draw([{**row, "size_bytes": size} for size in (8, 1024)], file)
            self.assertIn("<svg", file.read_text(encoding="utf-8"))


class Residents(unittest.TestCase):
    def fake(self):
        job = Resident("fake", 1, [], FAKE, [], {})
        self.addCleanup(job.stop)
        job.wait_ready(20)
        return job

    def test_wrong_results_are_counted(self):
        job = self.fake()
        self.assertEqual(job.version, 'fake "1"')
        self.assertEqual(job.ask("check allreduce 64")[0]["wrong"], 0)
        self.assertEqual(job.ask("check reduce 64")[0]["wrong"], 1)
        self.assertEqual(len(job.ask("allreduce 64 10 3")[0]["ns"]), 3)

    def test_what_fails_is_told_and_the_rest_goes_on(self):
        job = self.fake()
        with self.assertRaisesRegex(Lacking, "this library has no broadcast"):
            job.ask("check broadcast 64")
        for command, words in (("check alltoall 64", "no route"),
                               ("allreduce 64", "bad command"), ("check nothing 8", "unknown collective 'nothing'")):
            with self.assertRaisesRegex(PeerError, words):
                job.ask(command)
        self.assertEqual(job.ask("check allreduce 64")[0]["wrong"], 0)

    def test_a_death_is_seen_and_nothing_stays(self):
        job = self.fake()
        with self.assertRaisesRegex(PeerError, "ended"):
            job.ask("check gather 64", 20)
        job.stop()
        self.assertFalse(job.folder.exists())

    def test_a_program_that_is_not_there(self):
        with self.assertRaisesRegex(PeerError, "No such file"):
            Resident("ghost", 1, [], "/nonexistent", [], {})

    def test_idle_jobs_sleep(self):
        folder = pathlib.Path(BUILD)
        found, _ = contenders.find(folder)
        for one in [contenders.tutti(folder, "shm"), contenders.tutti(folder, "tcp"), *found[:1]]:
            job = Resident(one.name, 2, [], one.binary, one.command, one.environment, one.argument)
            self.addCleanup(job.stop)
            job.wait_ready()
            job.ask("allreduce 1024 50 2")
            self.assertEqual((job.folder / "log").read_bytes(), b"", one.name)  # nothing that Tutti would warn of
            before = cpu_seconds(job)
            time.sleep(0.5)  # the time over which is measured
            self.assertLess(cpu_seconds(job) - before, 0.05, one.name)
            job.stop()

    def test_the_distance_is_a_time_of_a_cache_line(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("one CPU")
        probe = Probe(os.path.join(BUILD, "bench", "peers", "tutti-peers-probe"), cpus)
        self.addCleanup(probe.stop)
        for _ in range(3):
            self.assertTrue(10 < probe.distance_ns() < 1e6)


unittest.main(argv=sys.argv[:1])
