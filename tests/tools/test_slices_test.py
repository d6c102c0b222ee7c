#!/usr/bin/env python3
"""tools/test_slices.py: every test is in one slice, slices cost the same, and the everyday suite leaves out the tests
that it lists."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
from xml.sax.saxutils import quoteattr

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["TITAN_BUILD"])
sys.path.insert(0, str(SOURCE / "tools"))
import test_slices  # noqa: E402


class TestSlices(unittest.TestCase):
    def test_every_test_is_in_one_slice_and_slices_cost_the_same(self):
        names = [f"test {i}" for i in range(200)]
        costs = {name: 1 + 37 * i % 50 for i, name in enumerate(names)}
        for count in (1, 3, 8):
            parts = test_slices.slices(names, costs, count)
            self.assertEqual(sorted(index for part in parts for index in part), list(range(200)))
            sums = [sum(costs[names[index]] for index in part) for part in parts]
            self.assertLessEqual(max(sums) - min(sums), 50)

    def test_a_new_test_moves_no_more_than_it_must(self):
        names = [f"test {i}" for i in range(50)]
        self.assertEqual(test_slices.slices(names, {}, 4), test_slices.slices(names, {}, 4))

    def test_the_slices_of_this_tree_are_what_ctest_runs(self):
        names = test_slices.tests(BUILD)
        self.assertGreater(len(names), 150)
        run = subprocess.run([sys.executable, SOURCE / "tools/test_slices.py", "2/40", "--build", BUILD], capture_output=True, text=True)
        chosen = [int(word) for word in run.stdout.split(",")[3:]]
        listed = subprocess.run(["ctest", "--test-dir", BUILD, "-N", "-I", run.stdout.strip()], capture_output=True, text=True).stdout
        for number in chosen:
            self.assertIn(f"Test #{number}: {names[number - 1]}\n", listed.replace("Test  #", "Test #").replace("Test   #", "Test #"))

    def test_the_oldest_slice_is_one_that_never_ran_or_the_one_that_ran_longest_ago(self):
        rows = {part: f"| slice_{part} | an eighth | 10 min | 2026-11-{10 + part} | abc | 9 s | passed |" for part in range(1, 9)}
        self.assertEqual(test_slices.oldest("\n".join(rows.values()), commits=5), 1)
        rows[4] = rows[4].replace("2026-11-14", "2026-11-02")
        self.assertEqual(test_slices.oldest("\n".join(rows.values()), commits=5), 4)
        rows[2], rows[7] = "| slice_2 | an eighth | 10 min | never | | | |", "| other | x | 1 min | never | | | |"
        page = "\n".join(rows.values())
        self.assertEqual([test_slices.oldest(page, commits) for commits in range(4)], [2, 7, 2, 7])

    def test_what_has_run_is_left_out_of_a_slice(self):
        names = test_slices.tests(BUILD)
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder, "results.xml")
            chosen = lambda: subprocess.run([sys.executable, SOURCE / "tools/test_slices.py", "3/8", "--names", "--build", BUILD, "--not-in",
                                             results], capture_output=True, text=True).stdout.splitlines()
            results.write_text("<testsuite></testsuite>")
            complete = chosen()
            self.assertGreater(len(complete), 10)
            results.write_text("<testsuite>" + "".join(f"<testcase name={quoteattr(name)}/>" for name in complete[1:]) + "</testsuite>")
            self.assertEqual(chosen(), complete[:1])
            results.write_text("<testsuite>" + "".join(f"<testcase name={quoteattr(name)}/>" for name in names) + "</testsuite>")
            self.assertEqual(chosen(), [])

    def test_every_suite_of_the_unit_tests_is_part_of_one_test(self):
        filters = collections.Counter()
        for test in test_slices.all_tests(BUILD):
            filters.update(suite.removesuffix(".*") for word in test.get("command", []) if word.startswith("--gtest_filter=")
                           for suite in word.split("=", 1)[1].split(":") if not suite.startswith("*/"))
        for program in ("titan_torch_free_tests", "titan_torch_tests"):
            listed = subprocess.run([BUILD / "bin" / program, "--gtest_list_tests"], capture_output=True, text=True).stdout
            suites = {line.split("#")[0].strip().rstrip(".").split("/")[-1] for line in listed.splitlines() if line and line[0] not in " R"}
            self.assertGreater(len(suites), 100)
            self.assertEqual({suite: filters[suite] for suite in suites if filters[suite] != 1}, {})

    def test_what_the_everyday_suite_leaves_out_are_tests_and_each_names_a_cheaper_one(self):
        shown = subprocess.run(["ctest", "--test-dir", BUILD, "-N", "-L", "^thorough$"], capture_output=True, text=True).stdout
        for line in (SOURCE / "tests/thorough.txt").read_text().splitlines():
            if line.startswith("#"):
                continue
            name, cheaper = line.split(None, 1)
            self.assertTrue(cheaper)
            if name != "referee.parquet_referee":  # needs Arrow
                self.assertIn(f": {name}\n", shown)

    def test_costs_are_of_tests_that_exist(self):
        names = set(test_slices.tests(BUILD))
        unknown = set(json.loads(test_slices.COSTS.read_text())["tests"]) - names
        self.assertLess(len(unknown), 8, sorted(unknown))


class Mutations(unittest.TestCase):
    def test_every_text_to_find_stands_once_in_its_file(self):
        run = subprocess.run([sys.executable, SOURCE / "tests/mutations/run.py", "--list"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_every_test_of_ctest_exists_once(self):
        names = test_slices.tests(BUILD)
        for mutation in tomllib.loads((SOURCE / "tests/mutations/mutations.toml").read_text())["mutation"]:
            if "ctest" in mutation:
                with self.subTest(mutation["name"]):
                    self.assertEqual(len([name for name in names if re.search(mutation["ctest"], name)]), 1, mutation["ctest"])


if __name__ == "__main__":
    unittest.main()
