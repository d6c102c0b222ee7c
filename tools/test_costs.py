#!/usr/bin/env python3
"""What each test cost in the last run of ./run_tests.sh, and what each part of the build did.

    tools/test_costs.py                         the dearest tests and the sums by kind, as Markdown
    tools/test_costs.py --write docs/test_costs.md
    tools/test_costs.py --costs tests/costs.json    the seconds of each test of two or more, for tools/test_slices.py

Reads build/release/test_results.xml (ctest's JUnit file) and build/release/.ninja_log. Times are wall clock with several
tests, or compilers, at a time: shares say more than seconds.
"""

import argparse
import collections
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/release"
MOST = 40


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def kind_of(name):
    prefix = name.split(".")[0]
    return prefix if prefix in ("end_to_end", "referee", "fuzz", "parity", "scaling") else "unit"


def measured():
    """[(test, seconds)] of the last run."""
    return [(case.get("name"), float(case.get("time"))) for case in
            xml.etree.ElementTree.parse(BUILD / "test_results.xml").iter("testcase")]


def tests():
    cases = measured()
    total = sum(seconds for _, seconds in cases)
    kinds = collections.Counter()
    for name, seconds in cases:
        kinds[kind_of(name)] += seconds
    counts = collections.Counter(kind_of(name) for name, _ in cases)
    by_kind = [(kind, str(counts[kind]), f"{seconds:.0f}", f"{seconds / total:.0%}") for kind, seconds in kinds.most_common()]
    dearest = sorted(cases, key=lambda case: -case[1])[:MOST]
    return (f"{len(cases)} tests, {total:.0f} s added up.\n\n"
            + table(["kind", "tests", "s", "share"], by_kind) + f"\n\nThe {len(dearest)} dearest:\n\n"
            + table(["test", "s", "share"], [(name, f"{s:.1f}", f"{s / total:.1%}") for name, s in dearest]))


def build():
    """Seconds per target; the newest entry of each output counts."""
    steps = {}
    for line in (BUILD / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        steps[output] = (int(end) - int(start)) / 1000
    targets = collections.Counter()
    for output, seconds in steps.items():
        found = re.match(r"(.*?)CMakeFiles/([^/]+)\.dir/", output)
        targets[found[1] + found[2] if found else "links and the rest"] += seconds
    total = sum(targets.values())
    return (f"{len(steps)} steps, {total:.0f} s added up over the compilers that ran at a time.\n\n"
            + table(["target", "s", "share"],
                    [(name, f"{s:.0f}", f"{s / total:.1%}") for name, s in targets.most_common(15)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--costs", metavar="FILE", type=pathlib.Path)
    arguments = parser.parse_args()
    if not (BUILD / "test_results.xml").exists():
        parser.error("no build/release/test_results.xml: run ./run_tests.sh first")
    if arguments.costs:
        costs = {name: round(seconds) for name, seconds in sorted(measured()) if seconds >= 2}
        arguments.costs.write_text(json.dumps(costs, indent=1) + "\n")
        return
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    text = (f"# What the tests cost\n\nWritten by `tools/test_costs.py --write docs/test_costs.md` after `./run_tests.sh` at "
            f"{commit} on {os.cpu_count()} cores ({platform.machine()}).\n\n## Tests\n\n{tests()}\n\n## Build\n\n{build()}\n")
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    sys.exit(main())
