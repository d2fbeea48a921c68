#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""test_counters.py TUTTI_INFO TUTTI_PERF: tutti-info explains exactly the counters that a context has."""
import json
import re
import subprocess
import sys
import unittest

TUTTI_INFO, TUTTI_PERF = sys.argv[1:3]


class Counters(unittest.TestCase):
    def test_all_are_explained(self):
        done = subprocess.run([TUTTI_PERF, "barrier", "-t", "2", "-n", "1", "--counters", "--json", "-"], capture_output=True, text=True,
                              timeout=50, check=True)
        counted = set(json.loads(done.stdout)["counters"])
        page = subprocess.run([TUTTI_INFO, "counters"], capture_output=True, text=True, timeout=50, check=True).stdout
        explained = set(re.findall(r"^([a-z]+\.[a-z_]+)\n    \S", page, re.M))
        self.assertGreater(len(counted), 3)
        self.assertEqual(counted - explained, set(), "counters that tutti-info does not explain")
        # A transport that was left out of the build has its explanations all the same.
        transports = {name.split(".")[0] for name in counted}
        self.assertEqual({name for name in explained - counted if name.split(".")[0] in transports}, set(), "counters that do not exist")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
