#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""test_hello.py TUTTIRUN HELLO: what the README's program prints, without a launcher and on three ranks."""
import subprocess
import sys
import unittest

TUTTIRUN, HELLO = sys.argv[1:3]


def lines(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return sorted(done.stdout.splitlines())


class Hello(unittest.TestCase):
    def test_alone(self):
        self.assertEqual(lines(HELLO), ["rank 0 of 1: the sum of 1..1 is 1"])

    def test_three_ranks(self):
        self.assertEqual(lines(TUTTIRUN, "-np", "3", HELLO), [f"rank {rank} of 3: the sum of 1..3 is 6" for rank in range(3)])

    def test_an_environment_that_contradicts_itself_is_told(self):
        done = subprocess.run([HELLO], capture_output=True, text=True, timeout=60, check=False,
                              env={"TUTTI_RANK": "5", "TUTTI_SIZE": "3", "TUTTI_RENDEZVOUS": "tcp://127.0.0.1:1"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("create: ", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
