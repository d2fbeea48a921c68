#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""test_tutti_perf.py TUTTI_PERF: whole runs, with threads as ranks."""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

TUTTI_PERF = sys.argv[1]
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]
OPS = ["sum", "prod", "min", "max", "avg"]


def perf(*arguments, **variables):
    return subprocess.run([TUTTI_PERF, *arguments], capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, **variables})


class TuttiPerf(unittest.TestCase):
    def results(self, *arguments):
        done = perf(*arguments, "--json", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def test_every_type_and_operation_in_and_out_of_place(self):
        results = self.results("allreduce", "-t", "3", "-b", "0", "-e", "1000", "-i", "1000", "-d", "all", "-o", "all", "-n", "2", "-w", "1")
        self.assertEqual(results["ranks"], 3)
        self.assertEqual(results["wrong"], 0)
        self.assertEqual(list(dict.fromkeys((row["dtype"], row["op"]) for row in results["rows"])), [(d, o) for d in DTYPES for o in OPS])
        for row in results["rows"]:
            for timing in (row["out_of_place"], row["in_place"]):
                self.assertEqual(timing["iterations"], 2)
                self.assertGreater(timing["time_us"], 0)
                self.assertLessEqual(timing["p50_us"], timing["p99_us"])

    def test_the_other_collectives(self):
        results = self.results("broadcast", "barrier", "sendrecv", "-t", "3", "-r", "1", "-e", "64K", "-f", "64", "-n", "2", "-c", "2")
        rows = results["rows"]
        self.assertEqual({row["collective"]: row["root"] for row in rows}, {"broadcast": 1, "barrier": None, "sendrecv": None})
        self.assertTrue(all(row["in_place"] is None for row in rows))
        self.assertEqual([row["bytes"] for row in rows if row["collective"] == "sendrecv"], [8, 512, 32768])
        self.assertEqual(results["wrong"], 0)

    def test_one_rank(self):
        results = self.results("allreduce", "broadcast", "barrier", "sendrecv", "-e", "1K", "-n", "2")
        self.assertEqual((results["ranks"], results["wrong"]), (1, 0))

    def test_noise_passes_and_an_error_of_one_percent_fails(self):
        arguments = ("allreduce", "-t", "3", "-b", "4K", "-e", "4K", "-n", "1", "-w", "0", "-d", "all", "-o", "sum,max")
        noisy = perf(*arguments, "--inject", "ulp")
        self.assertEqual((noisy.returncode, noisy.stderr), (0, ""))
        self.assertIn("# Out of bounds values : 0 OK", noisy.stdout)
        corrupt = perf(*arguments, "--inject", "percent")
        self.assertEqual(corrupt.returncode, 1)
        # One element for each type and operation, in place and out of place.
        self.assertIn(f"# Out of bounds values : {len(DTYPES) * 2 * 2} FAILED", corrupt.stdout)
        self.assertIn("rank 2: allreduce of 1024 float32, sum, in place: 1 wrong of 1024; the first is element 512: got", corrupt.stderr)
        for collective in ("broadcast", "sendrecv"):
            self.assertEqual(perf(collective, "-t", "2", "-e", "8", "-n", "1", "--inject", "percent").returncode, 1)

    def test_sizes_of_a_network(self):
        results = self.results("allreduce", "-t", "2", "--sizes-from", "resnet50", "-e", "64K", "-n", "1", "-w", "0")
        rows = results["rows"]
        self.assertEqual(results["sizes_from"], "resnet50")
        self.assertTrue(rows[-1]["whole_model"])
        self.assertEqual(rows[-1]["tensors"], sum(row["tensors"] for row in rows[:-1]))
        self.assertEqual(rows[-1]["count"], sum(row["tensors"] * row["count"] for row in rows[:-1]))
        self.assertIn(f"{161 - rows[-1]['tensors']} tensors of resnet50 are above -e", results["notes"][0])
        self.assertEqual(results["wrong"], 0)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {kind: os.path.join(folder, "results." + kind) for kind in ("json", "csv")}
            done = perf("allreduce", "-e", "64", "-n", "3", "--json", paths["json"], "--csv", paths["csv"])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("# Avg bus bandwidth", done.stdout)
            with open(paths["json"], encoding="utf-8") as file:
                self.assertEqual(len(json.load(file)["rows"]), 4)
            with open(paths["csv"], encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.assertEqual([(row["bytes"], row["variant"], row["wrong"]) for row in rows][:2],
                             [("8", "out_of_place", "0"), ("8", "in_place", "0")])
        missing = perf("allreduce", "-e", "8", "--json", "/nonexistent/folder/x")
        self.assertEqual(missing.returncode, 3)
        self.assertIn("cannot write '/nonexistent/folder/x'", missing.stderr)

    def test_csv_alone_on_standard_output(self):
        rows = list(csv.DictReader(io.StringIO(perf("barrier", "-n", "2", "-c", "off", "--csv", "-").stdout)))
        self.assertEqual(len(rows), 1)
        self.assertEqual((rows[0]["collective"], rows[0]["wrong"]), ("barrier", ""))

    def test_settings_reach_the_library_and_the_heading(self):
        forced = perf("allreduce", "-t", "2", "-e", "8", "-n", "1", "--set", "allreduce=ring")
        self.assertEqual(forced.returncode, 0, forced.stderr)
        self.assertIn("# algorithm of allreduce: ring (--set)", forced.stdout)
        from_environment = perf("allreduce", "-t", "2", "-e", "8", "-n", "1", TUTTI_ALLREDUCE="tree")
        self.assertIn("# algorithm of allreduce: tree (TUTTI_ALLREDUCE)", from_environment.stdout)

    def test_what_is_wrong_is_named_once(self):
        for arguments, told in ((("allreduce", "-t", "3", "-e", "8", "-r", "3"), "-r 3: the job has ranks 0 to 2"),
                                (("allreduce", "-t", "3", "--set", "alreduce=ring"), "did you mean 'allreduce'"),
                                (("allreduce", "-t", "3", "-d", "f8"), "-d: 'f8'"), ((), "name a collective")):
            done = perf(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertEqual(done.stderr.count(told), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
