"""tests/gpu/run_all.py on the CPU: every stage runs, is not run again, and is in the report that is sent back."""

import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
BUILD = os.environ["TITAN_BUILD"]
STAGES = ["tests", "bits", "collectives", "ladder", "train_debugmodel_bfloat16", "train_debugmodel_float8"]


def run_all(*arguments):
    return subprocess.run([sys.executable, ROOT / "tests/gpu/run_all.py", "--device", "cpu", "--build", BUILD, *map(str, arguments)],
                          capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=1800)


class RunAll(unittest.TestCase):

    def test_stages_are_run_once_and_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "results"
            run = run_all("--out", out)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr + "".join(
                f"\n--- {log}\n{log.read_text()[-2000:]}" for log in out.glob("*.log")))
            self.assertEqual([line.split(":")[0] for line in run.stdout.splitlines()][:-1], STAGES)
            with tarfile.open(out / "report.tar.gz") as tar:
                names = {pathlib.Path(name).name for name in tar.getnames()}
            self.assertLessEqual({"report.md", "report.json", *(f"{stage}.json" for stage in STAGES)}, names)
            stages = {stage["stage"]: stage for stage in json.loads((out / "report.json").read_text())["stages"]}
            for row in stages["bits"]["found"]["rows"]:
                self.assertEqual((row["rounds"], row["results"]), (3, 1), row)
            self.assertEqual({row["operation"] for row in stages["collectives"]["found"]["rows"]},
                             {"all_reduce", "all_gather", "reduce_scatter"})
            report = (out / "report.md").read_text()
            for stage in STAGES[-2:]:
                self.assertGreater(stages[stage]["found"]["figures"]["tokens_per_second"], 0)
                self.assertIn(f"| {stage} | 2, all activations kept |", report)

            # what failed is run again, what did not is not; what changed is
            damaged = {**json.loads((out / "bits.json").read_text()), "status": "failed"}
            (out / "bits.json").write_text(json.dumps(damaged))
            other = {**json.loads((out / "collectives.json").read_text()), "key": "of another commit"}
            (out / "collectives.json").write_text(json.dumps(other))
            again = run_all("--out", out)
            self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
            known = [line.split(":")[0] for line in again.stdout.splitlines() if line.endswith(", known")]
            self.assertEqual(known, [stage for stage in STAGES if stage not in ("bits", "collectives")])
            self.assertEqual(json.loads((out / "bits.json").read_text())["status"], "ok")

    def test_a_failed_stage_fails_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            # ranks that cannot meet: the folder of their logs is a file
            (pathlib.Path(folder) / "collective_logs").write_text("")
            run = run_all("--out", folder, "--only", "collectives")
            self.assertEqual(run.returncode, 1, run.stdout)
            self.assertIn("collectives: failed", run.stdout)
            self.assertIn("| collectives | failed |", (pathlib.Path(folder) / "report.md").read_text())

    def test_dry_run_starts_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            run = run_all("--out", pathlib.Path(folder) / "none", "--dry-run")
            self.assertEqual([line.split(" ")[0] for line in run.stdout.splitlines()], STAGES)
            self.assertFalse((pathlib.Path(folder) / "none").exists())
            unknown = run_all("--only", "everything")
            self.assertEqual(unknown.returncode, 1)
            self.assertIn("there is no stage everything", unknown.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
