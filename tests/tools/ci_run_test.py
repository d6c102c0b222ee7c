#!/usr/bin/env python3
""".ci/run: which slice of all tests it adds to the everyday suite, and when it adds none."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])

RUN_TESTS = """#!/bin/bash
echo "run_tests $*" >>calls
mkdir -p build/release && touch build/release/test_results.xml
[[ ! -e fails || $# -gt 0 ]]
"""
# replaces Python with tools/test_slices.py: slice 3 is the oldest, and two of its tests have not run
PYTHON = """#!/bin/bash
echo "$*" >asked
case "$*" in
  *--oldest) echo 3/8 ;;
  *--names) printf 'a\\nb\\n' ;;
  *) cat rest ;;
esac
"""


class CiRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in (".ci", ".venv/bin"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(SOURCE / ".ci/run", self.root / ".ci/run")
        for name, text in (("run_tests.sh", RUN_TESTS), (".venv/bin/python", PYTHON)):
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        (self.root / "rest").write_text("0,0,0,4,7\n")

    def run_it(self, minutes="45"):
        (self.root / "calls").write_text("")
        run = subprocess.run([self.root / ".ci/run"], capture_output=True, text=True, env={**os.environ, "TITAN_CI_MINUTES": minutes})
        return run.returncode, run.stdout + run.stderr, (self.root / "calls").read_text().splitlines()

    def test_runs_what_the_oldest_slice_has_beside_the_suite(self):
        code, output, calls = self.run_it()
        self.assertEqual((code, calls), (0, ["run_tests ", "run_tests -I 0,0,0,4,7"]), output)
        self.assertRegex(output, r"\d minutes; a host three times slower would take \d")

    def test_runs_no_slice_of_which_all_has_run(self):
        (self.root / "rest").write_text("")
        self.assertEqual(self.run_it()[2], ["run_tests "])

    def test_a_suite_that_fails_ends_it(self):
        (self.root / "fails").write_text("")
        code, _, calls = self.run_it()
        self.assertNotEqual(code, 0)
        self.assertEqual(calls, ["run_tests "])

    def test_leaves_the_slice_out_when_the_minutes_are_used_and_runs_it_first_after_the_second_time(self):
        for _ in range(2):
            code, output, calls = self.run_it(minutes="0")
            self.assertEqual((code, calls), (0, ["run_tests "]))
            self.assertIn("slice 3 and the tests of the changed folders are skipped, because 0 minutes are used: a b", output)
        (self.root / "rest").write_text("")
        code, output, calls = self.run_it(minutes="0")
        self.assertEqual((code, calls), (0, ["run_tests --slice 3/8", "run_tests "]), output)
        self.assertIn("slice 3 was skipped twice", output)
        self.assertTrue((self.root / "asked").read_text().endswith(
            "--not-in build/release/test_results.xml build/long_checks/first_results.xml\n"), "the slice would run again")
        (self.root / "rest").write_text("0,0,0,4,7\n")
        self.assertEqual(self.run_it()[2], ["run_tests ", "run_tests -I 0,0,0,4,7"])


if __name__ == "__main__":
    unittest.main()
