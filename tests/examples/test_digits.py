#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""test_digits.py TUTTIRUN DIGITS DIGITS.CSV

Trains on 1, 2, 3 and 4 ranks: all ranks of a job end with the same weights in every bit, a second run of the job gives the same
weights again, and the accuracy is that of the single process within 0.5 %."""
import re
import subprocess
import sys
import unittest

TUTTIRUN, DIGITS, DATA = sys.argv[1:4]
ALLOWED_PERCENT = 0.5
WORTH_HAVING_PERCENT = 95.0


def train(ranks, *more):
    """(exit code, the hash of each rank, accuracy or None, all output)"""
    done = subprocess.run(
        [TUTTIRUN, "-np", str(ranks), DIGITS, DATA, *more], capture_output=True, text=True, timeout=100, check=False)
    hashes = {int(rank): text for rank, text in re.findall(rf"^rank (\d+) of {ranks}: weights ([0-9a-f]{{16}})$", done.stdout, re.M)}
    accuracy = re.search(r"^accuracy ([\d.]+) %", done.stdout, re.M)
    return done.returncode, hashes, float(accuracy[1]) if accuracy else None, done.stdout + done.stderr


class Digits(unittest.TestCase):
    def check_job(self, ranks):
        code, hashes, accuracy, output = train(ranks)
        self.assertEqual(code, 0, output)
        self.assertEqual(sorted(hashes), list(range(ranks)), output)
        self.assertEqual(len(set(hashes.values())), 1, f"the weights differ:\n{output}")
        self.assertIsNotNone(accuracy, output)
        return hashes[0], accuracy

    def test_all_numbers_of_ranks_learn_the_same(self):
        _, alone = self.check_job(1)
        self.assertGreater(alone, WORTH_HAVING_PERCENT)
        for ranks in (2, 3, 4):
            with self.subTest(ranks=ranks):
                _, accuracy = self.check_job(ranks)
                self.assertLessEqual(abs(accuracy - alone), ALLOWED_PERCENT)

    def test_the_same_job_gives_the_same_bits(self):
        self.assertEqual(self.check_job(3)[0], self.check_job(3)[0])

    def test_training_changes_the_weights(self):
        _, short, _, _ = train(2, "1")
        _, longer, _, _ = train(2, "2")
        self.assertNotEqual(short[0], longer[0])

    def test_what_is_no_data_is_refused(self):
        done = subprocess.run([DIGITS, __file__], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("line 1: not 64 pixels", done.stderr)
        self.assertEqual(subprocess.run([DIGITS], capture_output=True, timeout=60, check=False).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
