#!/usr/bin/env python3
"""Splits all tests into N slices of equal cost, always the same way. ./run_tests.sh --slice K/N runs one of them.

    tools/test_slices.py 2/8                      test numbers of slice 2, in the form of ctest -I
    tools/test_slices.py 2/8 --names              test names instead of numbers
    tools/test_slices.py 2/8 --and-touched        adds the thorough tests of the changed folders (tools/touched_tests.py)
    tools/test_slices.py 2/8 --not-in RESULTS...  leaves out the tests that are in RESULTS, JUnit files of ctest (.ci/run)
    tools/test_slices.py --everyday-and NAME...   the everyday suite and these tests
    tools/test_slices.py --oldest                 the slice, as K/8, whose row in docs/results/long_checks.md is the oldest

Costs are the CPU seconds of tests/costs.json (written by tools/test_costs.py measure); a test that is not in it counts as a
tenth of a second. ctest itself adds the fixture that installs Titan to a slice whose tests need it.
"""

import argparse
import json
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import touched_tests

ROOT = pathlib.Path(__file__).resolve().parents[1]
COSTS = ROOT / "tests/costs.json"
PAGE = ROOT / "docs/results/long_checks.md"
COUNT = 8  # slices; tools/long_checks.sh has a row for each
SMALL = 0.1  # assumed CPU seconds of a test that has no row


def slices(names, costs, count):
    """Distributes the indices of `names` over `count` lists: the most expensive first, each into the cheapest list so far."""
    parts, sums = [[] for _ in range(count)], [0.0] * count
    for index in sorted(range(len(names)), key=lambda i: (-costs.get(names[i], SMALL), names[i])):
        least = min(range(count), key=lambda part: (sums[part], part))
        parts[least].append(index)
        sums[least] += costs.get(names[index], SMALL)
    return parts


def all_tests(build):
    """ctest's description of each test, with the properties as a dictionary."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    tests = json.loads(shown.stdout)["tests"]
    for test in tests:
        test["properties"] = {entry["name"]: entry["value"] for entry in test["properties"]}
    return tests


def tests(build):
    return [test["name"] for test in all_tests(build)]


def oldest(page, commits):
    """The K whose row on the page is the oldest, or never ran. Among several, the choice changes with each commit."""
    dates = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 5 and re.fullmatch(r"slice_[1-9]", cells[1]):
            dates[int(cells[1].removeprefix("slice_"))] = "" if cells[4] == "never" else cells[4]
    parts = range(1, COUNT + 1)
    first = min(dates.get(part, "") for part in parts)
    candidates = [part for part in parts if dates.get(part, "") == first]
    return candidates[commits % len(candidates)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", metavar="K/N", nargs="?")
    parser.add_argument("--everyday-and", nargs="+", metavar="NAME")
    parser.add_argument("--and-touched", action="store_true")
    parser.add_argument("--not-in", type=pathlib.Path, nargs="+", default=[], metavar="RESULTS")
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--names", action="store_true")
    arguments = parser.parse_args()
    names = tests(arguments.build)
    left_out = touched_tests.thorough_tests(ROOT)
    costs = json.loads(COSTS.read_text())["tests"]
    if arguments.oldest:
        commits = int(subprocess.run(["git", "-C", ROOT, "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=True).stdout)
        print(f"{oldest(PAGE.read_text(), commits)}/{COUNT}")
        return
    if arguments.everyday_and:
        chosen = [index for index, name in enumerate(names) if name not in left_out or name in arguments.everyday_and]
    else:
        part, count = map(int, (arguments.part or "0/0").split("/"))
        if not 1 <= part <= count:
            parser.error(f"K/N with 1 <= K <= N, got '{arguments.part}'")
        chosen = sorted(slices(names, costs, count)[part - 1])
        if arguments.and_touched:
            touched = touched_tests.tests_of_changes(ROOT)
            wanted = {names[index] for index in chosen}.union(left_out if touched is None else touched)
            chosen = [index for index, name in enumerate(names) if name in wanted]
        ran = {case.get("name") for file in arguments.not_in for case in xml.etree.ElementTree.parse(file).iter("testcase")}
        chosen = [index for index in chosen if names[index] not in ran]
    if arguments.names:
        for index in chosen:
            print(names[index])
    elif chosen:
        # ctest ignores start, end and stride if they are 0, and runs the numbers after them
        print(",".join(["0", "0", "0", *(str(index + 1) for index in chosen)]))


if __name__ == "__main__":
    main()
