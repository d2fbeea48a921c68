# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""tutti-sim as its users see it: python3 test_tutti_sim.py PROGRAM SOURCE_ROOT"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
TOPOLOGIES = pathlib.Path(sys.argv[2]) / "tools/tutti-sim/topologies"


def run(*args, code=0):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=50)
    assert done.returncode == code, f"{args}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    if code == 0:
        assert done.stderr == "", done.stderr
        return done.stdout
    assert done.stdout == "", done.stdout
    assert done.stderr.startswith("tutti-sim: "), done.stderr
    return done.stderr


def run_json(*args):
    return json.loads(run(*args, "--json"))


class Compare(unittest.TestCase):
    def test_order_and_reason(self):
        page = run_json("compare", "allreduce", "-n", 64, "-b", "1M", "-t", TOPOLOGIES / "fat_tree.json")
        self.assertEqual((page["collective"], page["ranks"], page["bytes"]), ("allreduce", 64, 1 << 20))
        times = [row["time_ns"] for row in page["algorithms"]]
        self.assertGreater(len(times), 2)
        self.assertEqual(times, sorted(times))
        self.assertIn(page["algorithms"][0]["algorithm"] + " before " + page["algorithms"][1]["algorithm"], page["why"])
        for row in page["algorithms"]:
            self.assertEqual(row["method"], "every_event")
            self.assertGreater(row["rounds"], 0)
            self.assertGreater(row["max_sent_bytes"], 0)
            self.assertLessEqual(row["busiest_link"]["busy_share"], 1)

    def test_small_and_large_have_different_winners(self):
        def winner(size):
            return run_json("compare", "allreduce", "-n", 64, "-b", size)["algorithms"][0]["algorithm"]

        self.assertNotEqual(winner(8), winner("64M"))

    def test_text_has_the_same(self):
        text = run("compare", "broadcast", "-n", 100, "-b", "64K", "-t", TOPOLOGIES / "dragonfly.json", "--root", 7)
        self.assertIn("broadcast of 64 KiB on 100 ranks", text)
        self.assertIn("Why: ", text)

    def test_every_collective(self):
        for collective in ("allreduce", "reduce", "broadcast", "allgather", "gather", "scatter", "reduce_scatter", "alltoall",
                           "scan", "exscan", "barrier"):
            page = run_json("compare", collective, "-n", 12, "-b", "4K", "-t", TOPOLOGIES / "torus.json")
            for row in page["algorithms"]:
                self.assertNotIn("error", row)
                self.assertGreater(row["time_ns"], 0, row)

    def test_chosen_ones_only(self):
        page = run_json("compare", "allreduce", "-n", 8, "-a", "ring:segment_bytes=4K", "-a", "ring:segment_bytes=64K")
        self.assertEqual({row["text"].split(",")[0] for row in page["algorithms"]}, {"ring:segment_bytes=4K", "ring:segment_bytes=64K"})

    def test_formula_says_so(self):
        text = run("compare", "allreduce", "-n", 1000000, "--walk", "formula")
        self.assertIn("formula", text)
        self.assertIn("by a cost formula", text)


class Run(unittest.TestCase):
    def test_ranks_and_steps(self):
        page = run_json("run", "allreduce", "-a", "ring", "-n", 8, "-b", "64K")
        self.assertEqual(len(page["ranks"]), 8)
        self.assertEqual(max(rank["end_ns"] for rank in page["ranks"]), page["prediction"]["time_ns"])
        self.assertEqual(sum(rank["messages"] for rank in page["ranks"]), page["prediction"]["messages"])
        slowest = next(rank for rank in page["ranks"] if rank["rank"] == page["slowest_rank"])
        self.assertEqual(max(step["end_ns"] for step in page["steps"]), slowest["end_ns"])
        self.assertEqual(page["steps"][0]["what"], "to " + str((page["slowest_rank"] + 1) % 8))

    def test_text(self):
        text = run("run", "reduce", "-n", 300, "-b", "1M", "--root", 5)
        for word in ("predicted", "rounds", "Ranks", "Steps of rank"):
            self.assertIn(word, text)


class Topology(unittest.TestCase):
    def test_examples(self):
        for file, ranks in (("fat_tree.json", 131072), ("dragonfly.json", 131072), ("torus.json", 65536)):
            page = run_json("topology", TOPOLOGIES / file, "-n", 4096)
            self.assertEqual(page["capacity"], ranks)
            self.assertEqual(sum(row["ranks"] for row in page["from_rank_0"]), 4095)
            self.assertIn("From rank 0", run("topology", TOPOLOGIES / file))

    def test_bad_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{\n  "torus": {"dimensions": [4, 4]},\n  "nodes": 3\n}\n')
            file.flush()
            self.assertIn("nodes: there is no such field", run("topology", file.name, code=2))
            self.assertIn(file.name, run("compare", "allreduce", "-n", 4, "-t", file.name, code=2))


class Verify(unittest.TestCase):
    def test_right(self):
        text = run("verify", "broadcast", "-n", "1-4,7")
        self.assertIn("right: ", text)
        self.assertIn("1 to 7", text)
        page = run_json("verify", "-a", "recursive_doubling", "-n", "3,5")
        self.assertTrue(all(row["calls"] > 0 and row["ranks"] == [3, 5] for row in page))


class Usage(unittest.TestCase):
    def test_wrong_command_lines(self):
        for args, word in (
            (("compare", "allreduce"), "--ranks"),
            (("compare", "allreduc", "-n", 4), "did you mean 'allreduce'"),
            (("compare", "allreduce", "-n", 4, "-a", "rong"), "there are"),
            (("compare", "allreduce", "-n", 4, "-b", "lots"), "--bytes"),
            (("compare", "broadcast", "-n", 4, "--root", 4), "--root"),
            (("compare", "allreduce", "-n", 200000, "-t", TOPOLOGIES / "torus.json"), "no room"),
            (("verify", "-n", "4-2"), "--ranks"),
            (("verify", "-n", "9999"), "--ranks"),
            (("verify", "-a", "nonesuch"), "no algorithm"),
            (("topology", "no/such/file"), "cannot be read"),
            ((), "--help"),
        ):
            self.assertIn(word, run(*args, code=2))

    def test_calibrate(self):
        with tempfile.TemporaryDirectory() as folder:
            tuning = pathlib.Path(folder) / "tuning.txt"
            lines = ["tutti-tuning 1"]
            for size, flat, ring in ((8, 1.0, 2.0), (512, 1.1, 2.1), (4096, 2.0, 3.0), (65536, 20, 18)):
                where = f"time allreduce ranks=2 nodes=1 links=shm type=float bytes={size}"
                lines += [f"{where} flat {flat}us", f"{where} ring {ring}us"]
            tuning.write_text("\n".join(lines) + "\n")
            machine = pathlib.Path(folder) / "machine.json"
            (one,) = json.loads(run("calibrate", tuning, "--cores", 4, "-o", machine, "--json"))
            self.assertEqual(one["links"], "shm")
            (judged,) = one["judged"]
            self.assertEqual((judged["ranks"], judged["points"]), (2, 4))
            self.assertLess(judged["median_factor"], 2)
            self.assertIn("within 1.6x", run("calibrate", tuning))
            self.assertIn("recursive_doubling", run("compare", "allreduce", "-n", 4, "-t", machine))
            tuning.write_text("tutti-tuning 1\n")
            self.assertIn("no times of jobs on one node", run("calibrate", tuning, code=2))

    def test_help(self):
        self.assertIn("Examples:", run("--help"))
        self.assertIn("--topology", run("compare", "--help"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
