#!/usr/bin/env python3
"""Costs of the tests: each test has been measured, and the sums are within
tests/cost_budget.json."""

import json
import os
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tools"))
import test_costs  # noqa: E402
import test_slices  # noqa: E402
import touched_tests  # noqa: E402

WRITTEN = json.loads(test_costs.COSTS.read_text())
# tests that a build without optional parts lacks
SOMETIMES = {"referee.parquet_referee"}


class Costs(unittest.TestCase):
    def test_every_test_has_been_measured(self):
        names = test_slices.tests(test_costs.BUILD)
        self.assertGreater(len(names), 100)
        missing = sorted(set(names) - set(WRITTEN["tests"]))
        self.assertFalse(missing, f"measure them: tools/test_costs.py measure -R '^({'|'.join(missing)})$'")
        gone = sorted(set(WRITTEN["tests"]) - set(names) - SOMETIMES)
        self.assertFalse(gone, "tests/costs.json has rows of tests that do not exist")

    def test_the_sums_are_within_the_budget(self):
        budget = json.loads(test_costs.BUDGET.read_text())
        for tier, kinds in test_costs.tiers(WRITTEN, touched_tests.thorough_tests(SOURCE)).items():
            self.assertLessEqual(kinds.total(), budget[tier],
                                 f"the {tier} tests cost more than tests/cost_budget.json allows: make one cheaper, or raise "
                                 f"the budget in a commit of its own. {dict(kinds)}")

    def test_the_page_shows_what_was_measured(self):
        self.assertEqual((SOURCE / "docs/results/test_costs.md").read_text(), test_costs.page(), "run tools/test_costs.py write")

    def test_a_new_measurement_of_one_test_changes_its_row_alone(self):
        kept, file = test_costs.COSTS, pathlib.Path(os.environ["TITAN_BUILD"]) / "test_costs_test.json"
        self.addCleanup(setattr, test_costs, "COSTS", kept)
        self.addCleanup(file.unlink)
        test_costs.COSTS = file
        existing = {"end_to_end.a", "end_to_end.b", "unit.slow"}
        test_costs.note({"end_to_end.a": 20.0, "end_to_end.b": 0.52, "unit.slow": 3.0}, {"end_to_end.a": {"A.x": 15.0, "A.y": 0.2}}, 1.0, existing)
        first = json.loads(file.read_text())
        self.assertEqual(first["tests"], {"unit.slow": 3.0, "end_to_end.a": 20.0, "end_to_end.b": 0.5})
        self.assertEqual(first["methods"], {"end_to_end.a": {"A.x": 15.0}})
        test_costs.note({"unit.slow": 2.0}, {}, 1.0, existing - {"end_to_end.b"})
        second = json.loads(file.read_text())
        self.assertEqual(second["tests"], {"unit.slow": 2.0, "end_to_end.a": 20.0})
        self.assertEqual(second["methods"], first["methods"])
        sums = test_costs.tiers(second, ["end_to_end.a"])
        self.assertEqual({tier: kinds.total() for tier, kinds in sums.items()}, {"everyday": 2.0, "thorough": 20.0})


if __name__ == "__main__":
    unittest.main()
