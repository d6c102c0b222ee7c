"""experiments/lion as a stranger's project: built by a CMake run of its own against the installed sdk, and trained with."""

import os
import pathlib

from harness import ROOT, Case, losses, main, metrics
from installed import PREFIX, build_project, run_checked, titan_installed

PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "lion"
    PLUGINS = build_project(ROOT / "experiments/lion", build) / "lib/titan/plugins"
    run_checked("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")


class LionTest(Case):
    def train_lion(self, *arguments, out=None):
        out = out or self.out
        run = titan_installed("train", "--job.config_file", "experiments/lion/train.toml", "--plugins.paths", PLUGINS,
                              "--job.dump_folder", out, "--training.seq_len", "64", "--metrics.log_freq", "1",
                              *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return losses(out)

    def test_the_loss_falls(self):
        values = self.train_lion("--training.steps", "60")
        self.assertEqual(len(values), 60)
        self.assertLess(sum(values[-10:]) / 10, values[0] - 0.8)

    def test_the_momentum_is_used_from_the_second_step_on(self):
        # At step 1 the momentum is zero and the direction is the gradient's sign for any beta1 < 1; later it is not.
        steps = ["--training.steps", "5", "--debug.deterministic", "--lr_scheduler.warmup_steps", "0"]
        with_momentum = self.train_lion(*steps, out=self.folder / "with")
        without = self.train_lion(*steps, "--optimizer.beta1", "0", out=self.folder / "without")
        self.assertEqual(with_momentum[:2], without[:2])
        self.assertNotEqual(with_momentum[2:], without[2:])

    def test_its_options_are_checked_like_any_other(self):
        run = titan_installed("train", "--job.config_file", "experiments/lion/train.toml", "--plugins.paths", PLUGINS,
                              "--job.dump_folder", self.out, "--optimizer.beta2", "1.0", "--optimizer.momentum", "0.9")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "option 'beta2' of optimizer 'maintainers/lion' must be >= 0 and < 1, got 1",
                          "momentum", "titan describe optimizer maintainers/lion")
        self.assert_nothing_was_written()

    def test_the_program_lists_and_describes_it(self):
        listed = titan_installed("list", "optimizer", "--path", PLUGINS)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertRegex(listed.stdout, r"(?m)^optimizer +maintainers/lion +lion +1\.0\.0 ")
        described = titan_installed("describe", "optimizer", "maintainers/lion", "--path", PLUGINS)
        self.assertEqual(described.returncode, 0, described.stderr)
        self.assert_holds(described.stdout, "beta1", "0.9", "StatefulOptimizer")

    def test_it_trains_in_the_run_that_the_configuration_describes(self):
        self.train_lion("--training.steps", "2")
        self.assertRegex((self.out / "config.toml").read_text(), r'(?m)^name = "maintainers/lion"$')
        self.assertEqual([line["step"] for line in metrics(self.out)], [1, 2])


if __name__ == "__main__":
    assert PREFIX.is_dir(), f"nothing is installed in {PREFIX}"
    main()
