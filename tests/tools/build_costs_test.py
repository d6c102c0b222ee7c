#!/usr/bin/env python3
"""tools/build_costs.py and tools/cost_unit.py: CPU seconds of children count, each file has its target, and tables
have the seconds of this host and of the reference host."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tools"))
import build_costs  # noqa: E402
import cost_unit  # noqa: E402

BUSY = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"


class BuildCosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_the_launcher_counts_what_a_command_and_its_children_take(self):
        log = self.folder / "log"
        child = [sys.executable, "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY.format(0.5)!r}])\nsys.exit(3)",
                 "-o", "some/object.o"]
        run = subprocess.run([sys.executable, SOURCE / "tools/costs/record.py", log, *child])
        self.assertEqual(run.returncode, 3)
        row = json.loads(log.read_text())
        self.assertEqual(row["output"], "some/object.o")
        self.assertGreaterEqual(row["cpu"], 0.5)
        self.assertLess(row["cpu"], 5)

    def test_cpu_seconds_are_not_those_of_the_clock(self):
        code, cpu, wall = cost_unit.measured([sys.executable, "-c", "import time\ntime.sleep(1)"])
        self.assertEqual(code, 0)
        self.assertGreaterEqual(wall, 1)
        self.assertLess(cpu, 0.9)

    def test_what_is_built_for_which_target(self):
        for output, target in {
                "core/CMakeFiles/titan_core.dir/train/trainer.cpp.o": "titan_core",
                "core/CMakeFiles/titan_core.dir/Unity/unity_batch_3_cxx.cxx.o": "titan_core",
                "sdk/CMakeFiles/titan_torch_pch.dir/cmake_pch.hxx.gch": "precompiled headers",
                "bin/titan": "links"}.items():
            self.assertEqual(build_costs.target_of(output), target)

    def costs(self, name, factor, cpu):
        path = self.folder / name
        path.write_text(json.dumps({
            "commit": name, "date": "2026-01-01", "host_factor": factor, "jobs": 2,
            "stages": [{"stage": stage, "cpu": cpu, "wall": cpu, "mib": 100, "warnings": ["-Wx"]} for stage in build_costs.STAGES],
            "commands": [{"output": "core/CMakeFiles/titan_core.dir/train/a.cpp.o", "cpu": cpu, "wall": cpu, "mib": 50}]}))
        return path

    def test_a_slow_host_does_not_look_like_a_slow_build(self):
        run = subprocess.run([sys.executable, SOURCE / "tools/build_costs.py", "table", self.costs("after", 2.0, 60),
                              "--before", self.costs("before", 1.0, 100)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("| first loss (./run_train.sh) | 100 (100) | 30 (60) | 30% |", run.stdout)
        self.assertIn("| what ./run_tests.sh builds | 300 (300) | 90 (180) | 30% |", run.stdout)


if __name__ == "__main__":
    unittest.main()
