"""experiments/loss_gap, built against an installation: a command that reads two runs prints what Python reads from their files."""

import os
import pathlib

from harness import ROOT, TINY, Case, main, metrics
from installed import PREFIX, build_project, titan_installed

NAME = "maintainers/loss_gap"
LOSS = "loss_metrics/global_avg_loss"


class LossGapTest(Case):
    def test_the_largest_gaps_are_those_of_the_files(self):
        build = build_project(ROOT / "experiments/loss_gap", pathlib.Path(os.environ["TITAN_WORK"]) / "loss_gap")
        there = {"TITAN_PLUGIN_PATH": str(build / "lib/titan/plugins")}
        runs = [self.out / "a", self.out / "b"]
        for run, rate in zip(runs, ("1e-3", "3e-3")):
            done = titan_installed("train", *TINY, "--training.steps", 4, "--optimizer.lr", rate, "--job.dump_folder", run,
                                   "--metrics.loggers", "jsonl", "--metrics.log_freq", 1)
            self.assertEqual(done.returncode, 0, done.stderr)
        a, b = ({line["step"]: line[LOSS] for line in metrics(run) if LOSS in line} for run in runs)
        expected = sorted(((b[step] - a[step], step) for step in a), key=lambda gap: -abs(gap[0]))[:2]

        shown = titan_installed(NAME, *runs, "--most", 2, **there)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        found = [line.removeprefix("step ").split(": ") for line in shown.stdout.splitlines()]
        self.assertEqual([(float(gap), int(step)) for step, gap in found], expected)

        self.assertIn(f"  {NAME}", titan_installed("--help", **there).stdout)
        self.assertIn(f"command {NAME}: the steps", titan_installed("describe", "command", NAME, **there).stdout)
        missing = titan_installed(NAME, *runs, "--tag", "nothing", **there)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("has no scalar 'nothing' in metrics.jsonl", missing.stderr)
        wrong = titan_installed(NAME, runs[0], "--most", 0, "--tga", "x", **there)
        self.assertEqual(wrong.returncode, 2)
        self.assert_holds(wrong.stderr, "--most must be >= 1, got 0", "unknown option '--tga'; did you mean '--tag'?")
        self.assertIn("unknown command", titan_installed(NAME, *runs).stderr)  # without the plugin folder
        self.assertTrue((PREFIX / "lib/titan/plugins/titan-post").exists())  # programs of plugins are installed next to them


if __name__ == "__main__":
    main()
