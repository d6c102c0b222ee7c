"""Measures costs in CPU seconds at reference speed: user and system time of a command and its children, scaled by the host's speed.

Wall times differ by a factor of three between hosts, so each table of costs gives CPU seconds and the speed of the host. The host
factor is the time of this host for ten compilations of tools/costs/reference.cpp, divided by the time of the reference host. The
cost at reference speed is CPU seconds / host factor. Used by tools/build_costs.py and tools/test_costs.py.

    tools/cost_unit.py                          prints this host's factor
    tools/cost_unit.py COMMAND...               runs a command; prints its cost in CPU seconds and at reference speed
"""

import concurrent.futures
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
# CPU seconds of ten compilations by g++ 12.2 on the reference host: two cores of an AMD EPYC, both busy.
REFERENCE_SECONDS = 9.0
COMPILES = 10


def children_seconds():
    """CPU seconds of all children of this process that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(command, **options):
    """Runs a command; returns its exit code, CPU seconds (with its children) and wall seconds."""
    start, before = time.monotonic(), children_seconds()
    code = subprocess.run(command, **options).returncode
    return code, children_seconds() - before, time.monotonic() - start


def host_factor():
    """CPU seconds of this host divided by those of the reference host, with two busy cores, as in a build."""
    workers = min(2, os.cpu_count() or 1)
    command = ["g++", "-std=c++20", "-O2", "-c", str(ROOT / "tools/costs/reference.cpp"), "-o", os.devnull]
    subprocess.run(command, check=True)  # loads the compiler from disk, so that the timed runs do not
    before = children_seconds()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda _: subprocess.run(command, check=True), range(COMPILES)))
    return (children_seconds() - before) / REFERENCE_SECONDS


def median_factor(rounds=3):
    return statistics.median(host_factor() for _ in range(rounds))


def main():
    if len(sys.argv) == 1:
        print(json.dumps({"host_factor": round(median_factor(), 3), "reference_seconds": REFERENCE_SECONDS}))
        return 0
    before = host_factor()
    code, cpu, wall = measured(sys.argv[1:])
    factor = (before + host_factor()) / 2
    print(json.dumps({"cpu_s": round(cpu, 1), "wall_s": round(wall, 1), "host_factor": round(factor, 3),
                      "cpu_s_at_reference": round(cpu / factor, 1)}), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
