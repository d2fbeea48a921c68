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
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2"]
COMPLEX = ["complex64", "complex128"]
PAIRS = ["float32_int32", "float64_int32", "int16_int32", "int32_int32", "int64_int32"]
DTYPES = INTEGERS + FLOATS + COMPLEX + ["bool", "byte"] + PAIRS
BITS, LOGIC = ["band", "bor", "bxor"], ["land", "lor", "lxor"]
OPS = {**{dtype: ["sum", "prod", "min", "max", "avg", *BITS, *LOGIC] for dtype in INTEGERS},
       **{dtype: ["sum", "prod", "min", "max", "avg", "scaled"] for dtype in FLOATS},
       **{dtype: ["sum", "prod", "avg", "scaled"] for dtype in COMPLEX},
       "bool": ["sum", "prod", "min", "max", *LOGIC], "byte": BITS, **{dtype: ["minloc", "maxloc"] for dtype in PAIRS}}
REDUCTIONS = ["allreduce", "reduce", "reduce_scatter", "reduce_scatterv", "scan", "exscan"]
VECTORS = ["allgatherv", "gatherv", "scatterv", "reduce_scatterv", "alltoallv", "alltoallw"]
MESSAGES = ["sendrecv", "pingpong", "message_rate"]
COLLECTIVES = ["allreduce", "reduce", "broadcast", "allgather", "allgatherv", "gather", "gatherv", "scatter", "scatterv",
               "reduce_scatter", "reduce_scatterv", "alltoall", "alltoallv", "alltoallw", "scan", "exscan", "barrier", *MESSAGES]
ONE_BUFFER = ["broadcast", "barrier", *MESSAGES]
QUICK = ("-n", "2", "-w", "1")


def perf(*arguments, **variables):
    return subprocess.run([TUTTI_PERF, *arguments], capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, **variables})


class TuttiPerf(unittest.TestCase):
    def results(self, *arguments):
        done = perf(*arguments, "--json", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def test_every_collective_in_every_form_over_every_transport(self):
        for transport in ("shm", "tcp"):
            for mode in ("blocking", "nonblocking", "persistent"):
                with self.subTest(transport=transport, mode=mode):
                    results = self.results("all", "-t", "3", "-b", "0", "-e", "40K", "-i", "20000", *QUICK, "--mode", mode,
                                           "--set", "transports=" + transport)
                    wanted = [one for one in COLLECTIVES if mode != "persistent" or one not in MESSAGES]
                    self.assertEqual(list(dict.fromkeys(row["collective"] for row in results["rows"])), wanted)
                    self.assertEqual((results["wrong"], results["mode"], results["ranks"]), (0, mode, 3))
                    for row in results["rows"]:
                        self.assertEqual(row["in_place"] is None, row["collective"] in ONE_BUFFER, row)
                        self.assertLessEqual(row["bytes"], 40000)

    def test_every_type_and_operation_of_every_collective(self):
        results = self.results("all", "-t", "3", "-b", "1000", "-e", "1000", "-d", "all", "-o", "all", *QUICK)
        self.assertEqual(results["wrong"], 0)
        done = {}
        for row in results["rows"]:
            done.setdefault(row["collective"], []).append((row["dtype"], row["op"]))
            self.assertEqual(row["out_of_place"]["iterations"], 2)
            self.assertGreater(row["out_of_place"]["time_us"], 0)
            self.assertLessEqual(row["out_of_place"]["p50_us"], row["out_of_place"]["p99_us"])
        for collective in COLLECTIVES:
            if collective in REDUCTIONS:
                skipped = "avg" if "scan" in collective else ""
                self.assertEqual(done[collective], [(d, o) for d in DTYPES for o in OPS[d] if o != skipped])
            elif collective != "barrier":
                self.assertEqual(done[collective], [(d, None) for d in DTYPES])

    def test_a_wrong_result_of_every_collective_is_counted(self):
        for extra in ((), ("--mode", "nonblocking", "--outstanding", "2"), ("--mode", "group", "--outstanding", "3"), ("-r", "2", "--counts", "linear")):
            done = perf("all", "-t", "3", "-b", "4K", "-e", "4K", "-n", "1", "-w", "0", "--inject", "percent", "--json", "-", *extra)
            self.assertEqual(done.returncode, 1, done.stderr)
            for row in json.loads(done.stdout)["rows"]:
                wrong = 0 if row["collective"] == "barrier" else 1
                self.assertEqual(row["out_of_place"]["wrong"], wrong, row)
                if row["in_place"]:
                    self.assertEqual(row["in_place"]["wrong"], 1, row)

    def test_roots(self):
        rooted = ("reduce", "broadcast", "gather", "scatterv")
        each = self.results(*rooted, "-t", "3", "-b", "600", "-e", "600", *QUICK, "-r", "all")
        self.assertEqual([row["root"] for row in each["rows"]], [0, 1, 2] * 4)
        rotating = self.results(*rooted, "allreduce", "-t", "3", "-b", "600", "-e", "600", *QUICK, "-r", "rotate")
        self.assertEqual([row["root"] for row in rotating["rows"]], ["rotate"] * 4 + [None])
        self.assertEqual((each["wrong"], rotating["wrong"]), (0, 0))

    def test_blocks_of_different_lengths(self):
        for counts in ("linear", "random", "random:7", "one", "sparse"):
            results = self.results(*VECTORS, "-t", "5", "-b", "0", "-e", "40K", "-i", "20000", *QUICK, "--counts", counts, "-d", "i32,f64")
            self.assertEqual((results["wrong"], results["counts"]), (0, counts if counts != "random" else "random:1"))
            in_place = {row["collective"] for row in results["rows"] if row["in_place"]}
            self.assertEqual("alltoallv" in in_place, counts != "one")

    def test_threads_communicators_and_calls_under_way(self):
        for arguments in (("--parallel", "2"), ("--communicators", "3"), ("--mode", "nonblocking", "--outstanding", "4"),
                          ("--mode", "persistent", "--outstanding", "2", "--communicators", "3", "--parallel", "2", "-r", "rotate"),
                          ("--mode", "group", "--outstanding", "4", "--communicators", "2", "--parallel", "2", "-r", "rotate")):
            with self.subTest(arguments=arguments):
                results = self.results("allreduce", "gather", "alltoallv", "barrier", "-t", "3", "-b", "8", "-e", "8K", "-f", "1024",
                                       *QUICK, *arguments)
                self.assertEqual(results["wrong"], 0)
                self.assertEqual(len(results["rows"]), 7)
        rates = self.results("message_rate", "-t", "3", "-b", "8", "-e", "8", *QUICK, "--outstanding", "5", "--mode", "nonblocking")
        timing = rates["rows"][0]["out_of_place"]
        self.assertAlmostEqual(timing["messages_per_s"] * timing["time_us"], 1e6, delta=1)

    def test_overlap(self):
        for mode in ("nonblocking", "persistent", "group"):
            results = self.results("allreduce", "alltoall", "-t", "2", "-b", "1K", "-e", "64K", "-f", "64", *QUICK, "--overlap", "--mode", mode)
            for row in results["rows"]:
                timing = row["out_of_place"]
                self.assertGreater(timing["compute_us"], 0)
                self.assertGreater(timing["overall_us"], 0)
                hidden = 100 * (1 - (timing["overall_us"] - timing["compute_us"]) / timing["time_us"])
                self.assertAlmostEqual(timing["overlap_percent"], min(max(hidden, 0), 100), places=6)
            self.assertEqual(results["wrong"], 0)

    def test_the_summary_has_a_line_for_each_collective(self):
        done = perf("all", "-t", "2", "-e", "64", "-n", "2", "--mode", "persistent")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
        self.assertEqual([line[0] for line in lines], [one for one in COLLECTIVES if one not in MESSAGES])
        self.assertTrue(all(line[-1] == "0" for line in lines))
        self.assertIn("# left out: pingpong: --mode persistent is for collectives", done.stdout)
        self.assertEqual([line.split()[0] for line in perf("--list").stdout.splitlines()[2:]], COLLECTIVES)

    def test_the_other_collectives(self):
        results = self.results("broadcast", "barrier", "sendrecv", "-t", "3", "-r", "1", "-e", "64K", "-f", "64", "-n", "2", "-c", "2")
        rows = results["rows"]
        self.assertEqual({row["collective"]: row["root"] for row in rows}, {"broadcast": 1, "barrier": None, "sendrecv": None})
        self.assertTrue(all(row["in_place"] is None for row in rows))
        self.assertEqual([row["bytes"] for row in rows if row["collective"] == "sendrecv"], [8, 512, 32768])
        self.assertEqual(results["wrong"], 0)

    def test_one_rank(self):
        results = self.results("all", "-e", "1K", "-n", "2")
        self.assertEqual((results["ranks"], results["wrong"]), (1, 0))
        self.assertEqual(results["notes"], [f"left out: {one}: needs two ranks" for one in ("pingpong", "message_rate")])

    def test_noise_passes_and_an_error_of_one_percent_fails(self):
        arguments = ("allreduce", "-t", "3", "-b", "4K", "-e", "4K", "-n", "1", "-w", "0", "-d", "i8,u16,i64,f16,f32,f8e5m2", "-o", "sum,max")
        noisy = perf(*arguments, "--inject", "ulp")
        self.assertEqual((noisy.returncode, noisy.stderr), (0, ""))
        self.assertIn("# Out of bounds values : 0 OK", noisy.stdout)
        corrupt = perf(*arguments, "--inject", "percent")
        self.assertEqual(corrupt.returncode, 1)
        # One element for each type and operation, in place and out of place.
        self.assertIn(f"# Out of bounds values : {6 * 2 * 2} FAILED", corrupt.stdout)
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
                                (("allreduce", "-t", "3", "-d", "f8"), "-d: 'f8'"), ((), "name a collective"),
                                (("pingpong",), "pingpong needs two ranks"),
                                (("scan", "-o", "avg"), "scan: avg is not defined for float32"),
                                (("gather", "-t", "3", "-r", "rotate", "--communicators", "1024", "--mode", "nonblocking",
                                  "--outstanding", "4095"), "different calls; 65536 are the most")):
            done = perf(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertEqual(done.stderr.count(told), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
