#!/usr/bin/env python3
"""Measures the cost of each test in CPU seconds at reference speed (tools/cost_unit.py), and sums them for the budget.

    tools/test_costs.py measure                 runs every test; writes tests/costs.json
    tools/test_costs.py measure -R REGEX        runs only the matching tests and changes their rows
    tools/test_costs.py write                   writes docs/results/test_costs.md from tests/costs.json

The cost of a test includes all processes that its process starts and waits for. `measure` also records the cost of each method of
a Python test. tools/test_slices.py splits the tests by tests/costs.json. tests/cost_budget.json limits the cost of each tier
(everyday, thorough); the test tools.test_costs checks it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import cost_unit
import test_slices
import touched_tests

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/release"
COSTS = test_slices.COSTS
BUDGET = ROOT / "tests/cost_budget.json"
MOST = 40
# cases cheaper than this are not listed
SMALL = 1.0


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def kind_of(name):
    return name.partition(".")[0]


class Measurement:
    def __init__(self):
        self.costs, self.methods, self.failed = {}, {}, []
        self.lock = threading.Lock()
        self.log = BUILD / "test_costs.log"
        self.log.write_text("")

    def run(self, test):
        """Runs one test and records the CPU seconds of its process and of the processes that it waited for."""
        name, properties = test["name"], test["properties"]
        environment = dict(os.environ, **dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", [])))
        command = list(test["command"])
        methods = BUILD / f"test_costs.{name}.methods" if command[-1].endswith("_test.py") else None
        if methods:
            methods.unlink(missing_ok=True)
            command[1:1] = [str(ROOT / "tools/costs/methods.py"), str(methods)]
        process = subprocess.Popen(command, cwd=properties["WORKING_DIRECTORY"], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        with self.lock:
            self.costs[name] = usage.ru_utime + usage.ru_stime
            if methods and methods.exists():
                self.methods[name] = json.loads(methods.read_text())
                methods.unlink()
            if process.returncode not in (0, properties.get("SKIP_RETURN_CODE")):
                self.failed.append(name)
                with self.log.open("a") as log:
                    log.write(f"=== {name}\n{output}\n")
            print(f"{self.costs[name]:8.2f}  {name}", flush=True)


def measure(arguments):
    tests = test_slices.all_tests(BUILD)
    wanted = [test for test in tests if re.search(arguments.tests or "", test["name"])]
    if not wanted:
        sys.exit(f"test_costs: error: no test name matches '{arguments.tests}'; `ctest --test-dir build/release -N` lists all")
    measurement = Measurement()
    first = cost_unit.median_factor()
    # fixtures run first, and tests that hold a resource lock run one at a time
    setup = [test for test in wanted if "FIXTURES_SETUP" in test["properties"]]
    alone = [test for test in wanted if "RESOURCE_LOCK" in test["properties"] and test not in setup]
    rest = [test for test in wanted if test not in setup and test not in alone]
    for test in setup + alone:
        measurement.run(test)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(measurement.run, sorted(rest, key=lambda test: -test["properties"].get("COST", 0))))
    factor = (first + cost_unit.median_factor()) / 2
    costs = {name: seconds / factor for name, seconds in measurement.costs.items() if name not in measurement.failed}
    methods = {name: {method: seconds / factor for method, seconds in rows.items()} for name, rows in measurement.methods.items()}
    note(costs, methods, factor, {test["name"] for test in tests})
    if measurement.failed:
        sys.exit(f"test_costs: error: {', '.join(measurement.failed)} failed and keep their rows; output: {measurement.log}")


def note(costs, methods, factor, existing):
    """Writes tests/costs.json: a row for each test."""
    old = json.loads(COSTS.read_text()) if COSTS.exists() else {"tests": {}, "methods": {}}
    tests = {name: cost for name, cost in old["tests"].items() if name in existing}
    tests.update({name: round(cost, 1) for name, cost in costs.items()})
    kept = {name: rows for name, rows in old["methods"].items() if name in tests and name not in costs}
    kept.update({name: {method: round(cost, 1) for method, cost in rows.items() if cost >= SMALL}
                 for name, rows in methods.items() if costs.get(name, 0) >= 10})
    written = {"host_factor": round(factor, 2), "tests": dict(sorted(tests.items())), "methods": dict(sorted(kept.items()))}
    COSTS.write_text(json.dumps(written, indent=1) + "\n")


def tiers(written, thorough):
    """{tier: {kind: CPU seconds}}"""
    sums = {"everyday": collections.Counter(), "thorough": collections.Counter()}
    for name, cost in written["tests"].items():
        sums["thorough" if name in thorough else "everyday"][kind_of(name)] += cost
    return sums


def page():
    written, thorough, budget = json.loads(COSTS.read_text()), touched_tests.thorough_tests(ROOT), json.loads(BUDGET.read_text())
    sums = tiers(written, thorough)
    kinds = [kind for kind, _ in (sums["everyday"] + sums["thorough"]).most_common()]
    by_kind = [(kind, f"{sums['everyday'][kind]:.0f}", f"{sums['thorough'][kind]:.0f}") for kind in kinds]
    by_kind += [("sum", *(f"{sums[tier].total():.0f}" for tier in ("everyday", "thorough"))),
                ("budget", *(str(budget[tier]) for tier in ("everyday", "thorough")))]
    dearest = sorted(written["tests"].items(), key=lambda row: -row[1])[:MOST]
    rows = []
    for name, cost in dearest:
        methods = sorted(written["methods"].get(name, {}).items(), key=lambda row: -row[1])[:3]
        rows.append((name, f"{cost:.1f}", "thorough" if name in thorough else "everyday",
                     ", ".join(f"{method.split('.')[-1].removeprefix('test_')} {seconds:.0f}" for method, seconds in methods)))
    return (f"# What the tests cost\n\nWritten by `tools/test_costs.py write` from tests/costs.json, which `tools/test_costs.py measure` wrote: "
            f"CPU seconds at reference speed (`tools/cost_unit.py`; the measuring host took {written['host_factor']:.2f} times as many). "
            "./run_tests.sh runs the everyday tests; tests/thorough.txt names the others. The budget is in tests/cost_budget.json; "
            "the test tools.test_costs checks it.\n\n"
            + table(["kind", "everyday", "thorough"], by_kind) + f"\n\nThe {len(dearest)} most expensive tests:\n\n"
            + table(["test", "CPU s", "tier", "its most expensive cases"], rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("-R", dest="tests", metavar="REGEX")
    measuring.add_argument("-j", dest="jobs", type=int, default=2)
    commands.add_parser("write")
    arguments = parser.parse_args()
    if arguments.command == "measure":
        measure(arguments)
    (ROOT / "docs/results/test_costs.md").write_text(page())


if __name__ == "__main__":
    sys.exit(main())
