"""tests/gpu/run_all.py on a CPU: every stage with small sizes, planted faults, an interrupted run, and
repeated stages."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
RUN_ALL = ROOT / "tests/gpu/run_all.py"
sys.path.insert(0, str(ROOT / "tests/gpu"))
import stages  # noqa: E402


def words(*arguments):
    return [sys.executable, RUN_ALL, "--device", "cpu", *map(str, arguments)]


def run_all(*arguments):
    return subprocess.run(words(*arguments), capture_output=True, text=True, timeout=1800, check=False)


def report(out):
    return json.loads((pathlib.Path(out) / "report.json").read_text())


class RunAll(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.out = pathlib.Path(holder.name) / "results"

    def test_every_stage_passes_in_small(self):
        # limits are those for a GPU; this machine may be many times slower
        run = run_all("--out", self.out, "--minutes", 25, "--patience", 12)
        failed = {record["stage"]: [check for check in record["checks"] if not check["ok"]] + record["says"]
                  for record in report(self.out)["stages"] if record["status"] != "passed"}
        self.assertEqual(failed, {}, run.stdout + run.stderr)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual([record["stage"] for record in report(self.out)["stages"]], [stage.name for stage in stages.STAGES])
        found = {record["stage"]: record for record in report(self.out)["stages"]}
        operations = found["operations"]["tables"]["operations"]
        self.assertGreater(len(operations), 50)
        for row in operations:
            if "skipped" not in row and "rounds" in row:
                self.assertEqual((row["rounds"], row["results"]), (2, 1), row)
        self.assertTrue(any(row["by"] == "Titan" and row["tokens_per_second"] > 0 for row in found["train_8B"]["tables"]["training"]))
        self.assertEqual({row["operation"] for row in found["communication"]["tables"]["collectives"]},
                         {"all_reduce", "all_gather", "reduce_scatter"})

    def test_faults_end_their_stage_alone(self):
        run = run_all("--out", self.out, "--only", "device", "first_steps", "graphs", "operations", "float8", "--limit", 4, "--plant",
                      "device=hang", "first_steps=crash", "graphs=nan", "operations=garbage")
        self.assertEqual(run.returncode, 1, run.stdout)
        found = {record["stage"]: record for record in report(self.out)["stages"]}
        self.assertEqual([found[name]["status"] for name in ("device", "first_steps", "graphs", "operations")], ["failed"] * 4)
        self.assertIn("it did not finish within 4 s", found["device"]["says"][0])
        self.assertIn("SIGSEGV", found["first_steps"]["says"][0])
        self.assertEqual([check["check"] for check in found["graphs"]["checks"] if not check["ok"]], ["loss"])
        self.assertGreater(found["operations"]["unread_lines"], 0)
        self.assertIn("exit code 1 without a failed check", found["operations"]["says"][0])
        for name in ("device", "first_steps", "operations"):  # stages before the fault are kept
            self.assertEqual(found[name]["checks"][0]["check"], "before the fault")
        self.assertEqual(found["float8"]["status"], "passed", found["float8"])
        self.assertEqual(found["diagnosis"]["status"], "passed", found["diagnosis"])
        text = (self.out / "report.md").read_text()
        for name in ("device", "first_steps", "graphs", "operations"):
            self.assertIn(f"| {name} | failed |", text)
        # only failed stages run again
        again = run_all("--out", self.out, "--again-failed", self.out / "report.json", "--list")
        self.assertEqual([line.split()[0] for line in again.stdout.splitlines()][:-1], ["device", "first_steps", "operations", "graphs"])

    def test_a_run_that_is_killed_leaves_a_whole_report(self):
        with subprocess.Popen(words("--out", self.out, "--only", "float8", "graphs", "trace", "--plant", "graphs=hang"),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            limit = time.monotonic() + 300
            while time.monotonic() < limit:
                if (self.out / "report.json").exists() and report(self.out)["running"] == "graphs":
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        found = report(self.out)
        self.addCleanup(self.end_stage)
        self.assertEqual((found["running"], found["not_started"]), ("graphs", ["trace"]))
        self.assertEqual([record["stage"] for record in found["stages"]], ["float8"])
        self.assertIn("| graphs | was running when this report was written |", (self.out / "report.md").read_text())
        again = run_all("--again-failed", self.out / "report.json", "--list")
        self.assertEqual([line.split()[0] for line in again.stdout.splitlines()][:-1], ["graphs", "trace"])

    def end_stage(self):
        """The stage that the killed run left behind."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError):
                continue
            if parent == 1 and len(command) > 2 and command[1].endswith("planted_fault.py") and command[2] == "hang":
                os.kill(int(process.name), signal.SIGKILL)

    def test_an_operation_that_leaves_a_nan_is_a_failed_check(self):
        programs = pathlib.Path(os.environ["TITAN_PROGRAM"]).parent
        script = ("import argparse, pathlib, sys; sys.path.insert(0, sys.argv[1]); from running import Context; "
                  "c = Context(argparse.Namespace(root=pathlib.Path.cwd(), programs=pathlib.Path(sys.argv[2]), device='cpu', "
                  "out=pathlib.Path(sys.argv[3]), seconds=100, failed=[])); "
                  "c.relay('device_probe', '--plugins', c.plugins, 'ops', 'cpu', 2, '--only', 'planted_unwritten', prefix='ops')")
        run = subprocess.run([sys.executable, "-c", script, ROOT / "tests/gpu", programs, self.out], cwd=ROOT, capture_output=True,
                             text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        checks = [found for found in map(json.loads, run.stdout.splitlines()) if "check" in found]
        self.assertEqual([check["ok"] for check in checks if "planted_unwritten" in check["check"]], [False, False], run.stdout)
        self.assertIn("not a number", run.stdout)

    def test_what_no_time_is_left_for_is_said(self):
        run = run_all("--out", self.out, "--only", "speed", "--minutes", 0.01)
        self.assertEqual(run.returncode, 0, run.stdout)
        [record] = report(self.out)["stages"]
        self.assertEqual(record["status"], "left out")
        self.assertIn("it needs", record["says"][0])

    def test_the_limits_are_those_of_a_short_run(self):
        listed = run_all("--list")
        self.assertEqual([line.split()[0] for line in listed.stdout.splitlines()][:-1], [stage.name for stage in stages.STAGES])
        self.assertIn(f"sum of the limits: {sum(stage.seconds for stage in stages.STAGES)} s", listed.stdout)
        unknown = run_all("--only", "everything")
        self.assertEqual(unknown.returncode, 1)
        self.assertIn("unknown stage everything", unknown.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
