"""Runs a Python test unchanged and records the CPU seconds of each of its methods. tools/test_costs.py measure uses it.

    methods.py OUT TEST.py [ARGUMENTS...]

Writes a JSON object {method: seconds} to OUT. The set-up of a class or module counts for its first method.
"""

import json
import pathlib
import resource
import runpy
import sys
import unittest

seconds = {}
last = 0.0


def spent():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def stop_test(self, test, original=unittest.TestResult.stopTest):
    global last
    now = spent()
    seconds[test.id().removeprefix("__main__.")] = now - last
    last = now
    original(self, test)


def main():
    global last
    out, script = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    sys.path.insert(0, str(pathlib.Path(script).parent))
    unittest.TestResult.stopTest = stop_test
    last = spent()
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        pathlib.Path(out).write_text(json.dumps(seconds))


if __name__ == "__main__":
    main()
