"""tools/gpu_report.py: the page shows the stored runs, names each failure, and a later run replaces an earlier one."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
TOOL = SOURCE / "tools/gpu_report.py"


def stage(name, ok, seconds=1.0, **more):
    return {"stage": name, "what": f"what {name} does", "status": "passed" if ok else "failed", "seconds": seconds, "limit": 10, "says": [],
            "checks": [{"check": f"{name} holds", "ok": ok, "value": 2.5, "limit": 1}], "figures": {}, "tables": {}, **more}


def report(*stages):
    return {"schema": 2, "machine": {"device": "cuda", "gpus": ["A card"], "cpus": 4, "date": "2030-01-02", "commit": "abc"},
            "seconds": 12, "running": None, "not_started": [], "stages": list(stages)}


def tables_of(*reports):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, value in enumerate(reports):
            paths.append(pathlib.Path(folder) / f"{number}.json")
            paths[-1].write_text(json.dumps(value))
        return subprocess.run([sys.executable, TOOL, *paths], capture_output=True, text=True, check=True).stdout


class GpuReport(unittest.TestCase):

    def test_the_page_is_that_of_the_kept_runs(self):
        run = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_failure_is_named_until_a_later_run_passes(self):
        failed = tables_of(report(stage("graphs", False), stage("speed", True)))
        self.assertIn("| graphs | what graphs does | 1 | failed | 1.0 | 1 | 1 |", failed)
        self.assertIn("- graphs: graphs holds: value 2.5, limit 1.", failed)
        mended = tables_of(report(stage("graphs", False), stage("speed", True)), report(stage("graphs", True)))
        self.assertIn("| graphs | what graphs does | 2 | passed | 1.0 | 1 | 0 |", mended)
        self.assertIn("| speed | what speed does | 1 | passed |", mended)
        self.assertIn("## Failures\n\nNone.", mended)

    def test_training_shows_the_latest_run_of_a_job(self):
        def trained(rate):
            return stage("train_8B", True, tables={"training": [{"job": "8B", "by": "Titan", "memory": "all", "tokens_per_second": rate}]})
        text = tables_of(report(trained(1000.0)), report(trained(2000.0)), report(trained(None)))
        self.assertIn("| 8B | Titan | 2 | all | 2,000 |", text)
        self.assertNotIn("1,000", text)

    def test_speed_shows_the_first_time_beside_the_last(self):
        def timed(us):
            return stage("speed", True, tables={"speed": [{"operation": "rope", "direction": "forward", "shape": "4", "dtype": "Half",
                                                           "us": us}]})
        self.assertIn("| rope | forward | 4 | Half | 9.0 | 3.0 |", tables_of(report(timed(9.0)), report(timed(3.0))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
