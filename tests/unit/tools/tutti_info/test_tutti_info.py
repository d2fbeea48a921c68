#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""test_tutti_info.py TUTTI_INFO SOURCE_ROOT"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TUTTI_INFO, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])


def info(*arguments, **variables):
    """(exit code, standard output, standard error); no TUTTI_ variable but those given."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
    done = subprocess.run(
        [TUTTI_INFO, *arguments], capture_output=True, text=True, timeout=50, check=False, env={**environment, **variables})
    return done.returncode, done.stdout, done.stderr


class TuttiInfo(unittest.TestCase):
    def page(self, *arguments, **variables):
        code, out, err = info(*arguments, **variables)
        self.assertEqual((code, err), (0, ""), out)
        return out

    def refused(self, *arguments):
        code, out, err = info(*arguments)
        self.assertEqual((code, out), (2, ""), err)
        self.assertTrue(err.startswith("tutti-info: "), err)
        return err

    def test_overview(self):
        text = self.page()
        header = (ROOT / "lib/include/tutti/tutti.h").read_text(encoding="utf-8")
        version = ".".join(re.search(rf"TUTTI_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
        self.assertIn(f"Tutti {version} ", text)
        self.assertEqual(self.page("version"), version + "\n")
        self.assertRegex(text, r"kernels +(avx2|sse4|scalar) ")
        self.assertRegex(text, r"transports +\w")
        self.assertIn("rank 3 of 8", self.page(TUTTI_RANK="3", TUTTI_SIZE="8"))
        self.assertIn("spin = 10us", self.page(TUTTI_SPIN="10us"))

    def test_reference_page_is_up_to_date(self):
        written = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
        self.assertEqual(written, self.page("config", "--markdown"), "run: tutti-info config --markdown > docs/settings.md")
        # It is about the settings, not about this machine.
        self.assertEqual(written, self.page("config", "--markdown", TUTTI_SPIN="7us"))

    def test_algorithms_page_is_up_to_date(self):
        written = (ROOT / "docs/algorithms.md").read_text(encoding="utf-8")
        self.assertEqual(written, self.page("algorithms", "--markdown"), "run: tutti-info algorithms --markdown > docs/algorithms.md")
        for file in (ROOT / "algorithms").glob("*/*.cpp"):
            if file.parent.name != "common":
                self.assertIn(f"| `{file.stem}` |", written)

    def test_settings_and_where_they_come_from(self):
        names = re.findall(r"^TUTTI_SETTING\((\w+),", (ROOT / "lib/base/include/base/settings.def").read_text(encoding="utf-8"), re.M)
        settings = {one["name"]: one for one in json.loads(self.page("config", "--json", TUTTI_SPIN="7us"))}
        self.assertEqual(list(settings), names)
        self.assertEqual((settings["spin"]["value"], settings["spin"]["source"]), ("7us", "environment"))
        self.assertEqual(settings["timeout"]["source"], "default")
        self.assertEqual(settings["log_level"]["choices"].split("|")[0], "error")
        text = self.page("config")
        for name in names:
            self.assertIn(f"\n{name} = ", "\n" + text)
            self.assertIn("TUTTI_" + name.upper(), text)

    def test_a_secret_is_not_shown(self):
        for arguments in ((), ("config",), ("config", "--json")):
            text = self.page(*arguments, TUTTI_SECRET="tell-nobody")
            self.assertNotIn("tell-nobody", text)
            self.assertIn("(hidden)", text)

    def test_a_bad_environment_is_told(self):
        for variables, told in (({"TUTTI_SPIM": "1us"}, "TUTTI_SPIN"), ({"TUTTI_SHM_SLOTS": "many"}, "many")):
            code, out, err = info("config", **variables)
            self.assertEqual(code, 1)
            self.assertIn("spin = ", out)
            self.assertIn(told, err)

    def test_every_algorithm_is_listed(self):
        text = self.page("algorithms")
        files = sorted(f for f in (ROOT / "algorithms").glob("*/*.cpp") if f.parent.name != "common")
        self.assertGreater(len(files), 0)
        for file in files:
            self.assertIn(f"{file.parent.name} {file.stem}\n", text)

    def test_choice(self):
        text = self.page("select", "allreduce", "--ranks", "8")
        self.assertIn("  any size ", text)
        self.assertIn("predicted", text)
        forced = self.page("select", "allreduce", "--ranks", "8", "--algorithm", "ring:segment_bytes=64K")
        self.assertIn("ring:segment_bytes=64K", forced)
        self.assertNotIn("up to", forced)
        self.assertNotEqual(text, self.page("select", "allreduce", "--ranks", "8", "--between-nodes"))

    def test_choice_of_one_call(self):
        call = ("choose", "allreduce", "--bytes", "64K")
        text = self.page(*call, "--ranks", "6")
        self.assertIn("allreduce of 64K on 6 ranks, 1 node, over shm\n", text)
        self.assertRegex(text, r"\n  choice: (\S+)\n  why:    \w+: .* predicted at ")
        self.assertIn(f"* {re.search(r'choice: (.*)', text)[1]} ", text)
        self.assertRegex(text, r"- swing +left out: it needs a power of two ranks")
        self.assertRegex(text, r"- hierarchical +left out: it is for nested ranks")
        self.assertRegex(self.page(*call, "--ranks", "6", "--nodes", "2"), r"[ *] hierarchical:\S+ +[\d.]+ us")
        self.assertRegex(self.page(*call, "--ranks", "4", "--ordered"), r"- ring +left out: it does not fold in rank order")
        self.assertEqual(self.page(*call, "--ranks", "8"), self.page(*call, "--ranks", "8", "--cpus", "8"))
        self.assertNotEqual(self.page(*call, "--ranks", "8"), self.page(*call, "--ranks", "8", "--cpus", "2"))
        forced = self.page(*call, "--ranks", "4", TUTTI_ALLREDUCE="ring:channels=2")
        self.assertIn("forced by the setting allreduce", forced)
        self.assertRegex(forced, r"\* ring:segment_bytes=0,channels=2 ")
        self.assertRegex(self.page(*call, "--ranks", "4", TUTTI_DETERMINISTIC="on"), r"- ring +left out: it is not deterministic")

    def test_choice_by_a_tuning_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "tuning.txt")
            file.write_text("tutti-tuning 1\n"
                            "use allreduce ranks=4 nodes=1 links=shm bytes<=4K flat\n"
                            "use allreduce ranks=4 nodes=1 links=shm bytes=any swing\n"
                            "time allreduce ranks=4 nodes=1 links=shm bytes=64K swing 41.5us\n"
                            "time allreduce ranks=4 nodes=1 links=shm bytes=64K ring:channels=2 52us\n", encoding="utf-8")
            call = ("choose", "allreduce", "--bytes", "100K")
            text = self.page(*call, "--ranks", "4", "--tuning-file", str(file))
            self.assertIn(f"measured on 4 ranks on 1 node ({file}:3)", text)
            self.assertRegex(text, r"measured at 64K\n  \* swing:\S+ +[\d.]+ us +41\.5 us\n    ring:segment_bytes=0,channels=2 +[\d.]+ us +52\.0 us\n")
            self.assertEqual(text, self.page(*call, "--ranks", "4", TUTTI_TUNING_FILE=str(file)))
            self.assertIn("it needs a power of two ranks", self.page(*call, "--ranks", "5", "--tuning-file", str(file)))
            self.assertIn("the nearest to 5 ranks", self.page("choose", "allreduce", "--bytes", "1K", "--ranks", "5", "--tuning-file", str(file)))
            self.assertIn("has nothing near 4 ranks on 1 node over tcp", self.page(*call, "--ranks", "4", "--links", "tcp", "--tuning-file", str(file)))
            file.write_text("tutti-tuning 1\nuse allreduce ranks=4 nodes=1 bytes=any swnig\n", encoding="utf-8")
            self.assertIn(f"{file}:2: ", self.refused(*call, "--ranks", "4", "--tuning-file", str(file)))

    def test_schedules(self):
        ring = ("schedule", "allreduce", "--ranks", "4", "--bytes", "1M", "--algorithm", "ring")
        one = self.page(*ring, "--rank", "2")
        self.assertIn("rank 2 of 4", one)
        self.assertNotIn("rank 1 of 4", one)
        self.assertIn("message to 3", one)
        everyone = self.page(*ring)
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4", everyone)
        self.assertIn("verified: ", self.page(*ring, "--verify"))
        self.assertIn("by slots", self.page(*ring, "--lowered", "slots"))
        self.assertIn("post_send", self.page(*ring, "--lowered", "messages"))
        graph = self.page(*ring, "--dot")
        self.assertTrue(graph.startswith("digraph"), graph)
        self.assertEqual(graph.count("{"), graph.count("}"))
        self.assertIn("rank 50000 of 100000", self.page("schedule", "allreduce", "--ranks", "100000", "--rank", "50000"))

    def test_every_schedule_that_is_chosen_is_right(self):
        for collective in ("allreduce", "broadcast", "barrier"):
            for ranks in ("1", "2", "5", "16"):
                for size in ("0", "8", "1M"):
                    arguments = ("schedule", collective, "--ranks", ranks, "--bytes", size, "--rank", "0", "--verify")
                    self.assertIn("verified: ", self.page(*arguments))

    def test_every_status_is_explained(self):
        header = (ROOT / "lib/include/tutti/tutti.h").read_text(encoding="utf-8")
        codes = re.findall(r"^  (TUTTI_ERR_\w+) = (-\d+)", header, re.M)
        self.assertGreater(len(codes), 20)
        self.assertEqual(re.findall(r"^  (TUTTI_ERR_\w+) \((-\d+)\)$", self.page("errors"), re.M), codes)

    def test_this_machine(self):
        text = self.page("topology")
        cpus = len(os.sched_getaffinity(0))
        for word in ("package ", "NUMA node ", "memory ", "interface lo: ", "this process: CPUs "):
            self.assertIn(word, text)
        machine = json.loads(self.page("topology", "--json"))["machine"]
        self.assertGreaterEqual(sum(cpu.count(",") + 1 for cpu in (core["cpus"] for core in machine["cores"])), 1)
        self.assertGreaterEqual(len(machine["cores"]) * 8, cpus)
        self.assertIn("lo", [one["name"] for one in machine["interfaces"]])

    def test_a_machine_is_loaded_again(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "node.json"
            file.write_text(self.page("topology", "--json"), encoding="utf-8")
            self.assertEqual(self.page("topology", "--load", str(file), "--json"), file.read_text(encoding="utf-8"))
            # A virtual machine may get more memory between the two.
            shown, now = (re.sub(r"[0-9.]+ GiB", "", page).splitlines()
                          for page in (self.page("topology", "--load", str(file)), self.page("topology")))
            self.assertEqual(shown, now[:-1])
            code, xml, err = info("topology", "--xml")
            if code == 0:
                file.write_text(xml, encoding="utf-8")
                self.assertIn("package ", self.page("topology", "--load", str(file)))
            else:
                self.assertIn("-Dhwloc=enabled", err)

    def test_a_machine_of_two_packages(self):
        file = str(ROOT / "tests/unit/topology/two_packages.xml")
        code, text, err = info("topology", "--load", file)
        if code != 0:
            self.assertIn("no hwloc", err)
            return
        lines = text.splitlines()
        at = lines.index("  package 1, CPUs 2-3")
        self.assertEqual(lines[at + 1:at + 4], ["    NUMA node 1: 1.0 GiB, CPUs 2-3", "      L3: 16M, CPUs 2-3", "        2 cores: CPUs 2  3"])
        self.assertIn("  gpu 0000:81:00.0 card1: NVIDIA Corporation H200, NUMA node 1", lines)
        self.assertIn("  network device 0000:82:00.0 ib0 mlx5_0: 15b3:1021, NUMA node 1", lines)

    def test_places_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "job.json"
            file.write_text('{"tutti_topology": 1, "places": [{"ranks": "0-1", "host": "a", "package": 0}, '
                            '{"ranks": "2,5", "host": "a", "package": 1}, {"ranks": "3-4", "host": "b", "package": 0}]}', encoding="utf-8")
            text = self.page("topology", "--load", str(file))
            self.assertIn("6 ranks on 2 nodes; levels, innermost first: package (3 groups), node (2 groups)\n", text)
            self.assertEqual(text.splitlines()[6].split(), ["4", "1", "0", "-", "-", "b", "-"])
            dumped = self.page("topology", "--load", str(file), "--json")
            file.write_text(dumped, encoding="utf-8")
            self.assertEqual(self.page("topology", "--load", str(file), "--json"), dumped)

    def test_a_job_of_one_rank(self):
        self.assertIn("1 rank on 1 node; levels, innermost first: none\n", self.page("topology", "--job"))

    def test_files_that_are_none_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "some.json"
            for text, word in (("", "line 1"), ("{}", "tutti_topology"), ("<topology>", "some.json"), ('{"flat": {}}', "tutti-sim"),
                               ('{"tutti_topology": 1, "places": [{"ranks": "0"}]}', "places[0].host"), ("\x7fELF", "line 1")):
                file.write_text(text, encoding="utf-8")
                code, out, err = info("topology", "--load", str(file))
                self.assertEqual(out, "")
                self.assertIn(code, (1, 2) if text.startswith("<") else (2,))
                self.assertIn("some.json: ", err)
                self.assertIn(word, err)
            self.assertIn("absent", self.refused("topology", "--load", f"{folder}/absent"))
            self.assertIn(folder, self.refused("topology", "--load", folder))
        self.assertIn("--xml", self.refused("topology", "--json", "--xml"))
        self.assertIn("--job", self.refused("topology", "--job", "--load", "x"))

    def test_help(self):
        text = self.page("--help")
        for word in ("Examples:", "Exit codes:", "schedule", "config", "counters"):
            self.assertIn(word, text)
        self.assertIn("--lowered", self.page("schedule", "--help"))

    def test_what_is_wrong_is_named(self):
        self.assertIn("'redduce'", self.refused("schedule", "redduce", "--ranks", "4"))
        self.assertIn("--ranks", self.refused("schedule", "allreduce"))
        self.assertIn("--ranks: 0", self.refused("select", "allreduce", "--ranks", "0"))
        self.assertIn("'rung'", self.refused("select", "allreduce", "--ranks", "4", "--algorithm", "rung"))
        self.assertIn("--root", self.refused("schedule", "broadcast", "--ranks", "4", "--root", "4"))
        self.assertIn("--rank", self.refused("schedule", "broadcast", "--ranks", "4", "--rank", "4"))
        self.assertIn("--rank", self.refused("schedule", "allreduce", "--ranks", "17"))
        self.assertIn("--bytes", self.refused("schedule", "allreduce", "--ranks", "4", "--bytes", "big"))
        self.assertIn("--dot", self.refused("schedule", "allreduce", "--ranks", "4", "--dot", "--lowered", "slots"))
        self.assertIn("--bytes", self.refused("choose", "allreduce", "--ranks", "4"))
        self.assertIn("--nodes: 5", self.refused("choose", "allreduce", "--ranks", "4", "--bytes", "8", "--nodes", "5"))
        self.assertIn("--type", self.refused("choose", "allreduce", "--ranks", "4", "--bytes", "8", "--type", "colour"))
        self.assertIn("absent.txt", self.refused("choose", "allreduce", "--ranks", "4", "--bytes", "8", "--tuning-file", "absent.txt"))
        self.assertIn("--markdown", self.refused("config", "--markdown", "--json"))
        self.assertIn("frobnicate", self.refused("frobnicate"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
