#!/usr/bin/env python3
"""Cuts all tests into N parts of even cost, always the same way: what ./run_tests.sh --slice K/N runs.

    tools/test_slices.py 2/8      the numbers of part 2, as ctest -I takes them
    tools/test_slices.py 2/8 --names
    tools/test_slices.py --everyday-and NAME...   the everyday suite and these

Costs are the seconds of tests/costs.json (written by tools/test_costs.py --costs); a test that is not in it counts as one
second. ctest itself adds the installation to a part whose tests need it.
"""

import argparse
import json
import pathlib
import subprocess

import touched_tests

ROOT = pathlib.Path(__file__).resolve().parents[1]
COSTS = ROOT / "tests/costs.json"


def slices(names, costs, count):
    """Indices of `names`, cut into `count` lists: the dearest first, each into the list that costs least so far."""
    parts, sums = [[] for _ in range(count)], [0.0] * count
    for index in sorted(range(len(names)), key=lambda i: (-costs.get(names[i], 1.0), names[i])):
        least = min(range(count), key=lambda part: (sums[part], part))
        parts[least].append(index)
        sums[least] += costs.get(names[index], 1.0)
    return parts


def tests(build):
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return [test["name"] for test in json.loads(shown.stdout)["tests"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", metavar="K/N", nargs="?")
    parser.add_argument("--everyday-and", nargs="+", metavar="NAME")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--names", action="store_true")
    arguments = parser.parse_args()
    names = tests(arguments.build)
    if arguments.everyday_and:
        left_out = touched_tests.thorough_tests(ROOT)
        chosen = [index for index, name in enumerate(names) if name not in left_out or name in arguments.everyday_and]
    else:
        part, count = map(int, (arguments.part or "0/0").split("/"))
        if not 1 <= part <= count:
            parser.error(f"K/N with 1 <= K <= N, got '{arguments.part}'")
        chosen = sorted(slices(names, json.loads(COSTS.read_text()), count)[part - 1])
    if arguments.names:
        print("\n".join(names[index] for index in chosen))
    else:
        # start, end and stride are not used; the numbers behind them are
        print(",".join(["0", "0", "0", *(str(index + 1) for index in chosen)]))


if __name__ == "__main__":
    main()
