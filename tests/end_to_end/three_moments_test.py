"""experiments/three_moments as a stranger's project: an optimizer with states of its own, judged by NumPy, under layouts, resumed, in
groups, and with a rule whose error stands at its place."""

import functools
import json
import os
import pathlib
import subprocess
import tempfile

import numpy

from harness import HANG, ROOT, TITAN, Case, environment, losses, main, metrics
from installed import PREFIX, assert_resumes_exactly, build_project, titan_installed

RECIPE = ["--job.config_file", "experiments/three_moments/train.toml"]
NAME = "maintainers/three_moments"
OPTIONS = {"lr": 1e-2, "beta1": 0.8, "beta2": 0.9, "beta3": 0.95, "lean": 0.1, "eps": 1e-6, "weight_decay": 0.1}
STEPS = 6
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "three_moments"
    PLUGINS = build_project(ROOT / "experiments/three_moments", build) / "lib/titan/plugins"


def train(out, ranks, *arguments):
    launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
    return titan_installed(*launch, "train", *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, "--training.dtype",
                           "float64", "--training.steps", STEPS, "--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio",
                           "0", *arguments)


@functools.cache
def alone():
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run = train(folder, 1)
        assert run.returncode == 0, run.stderr
        return losses(pathlib.Path(folder))


def in_numpy(weight, gradients, factors, o):
    """The formula of three_moments.cpp, step by step in double."""
    moments, betas = [numpy.zeros(weight.shape) for _ in range(3)], (o["beta1"], o["beta2"], o["beta3"])
    for count, (gradient, factor) in enumerate(zip(gradients, factors, strict=True), 1):
        for k in range(3):
            moments[k] = betas[k] * moments[k] + (1 - betas[k]) * gradient ** (k + 1)
        mean, square, cube = (moment / (1 - beta ** count) for moment, beta in zip(moments, betas, strict=True))
        scale = numpy.sqrt(square) + o["eps"]
        lr = o["lr"] * factor
        weight = weight * (1 - lr * o["weight_decay"]) - lr * (mean / scale - o["lean"] * cube / scale ** 3)
    return weight


class ThreeMomentsTest(Case):
    def test_numpy_computes_the_same(self):
        random = numpy.random.default_rng(5)
        shape, factors = (24, 40), [0.2, 0.6, 1.0, 0.5, 0.1]
        weight = random.normal(size=shape).astype(numpy.float32)
        gradients = (random.normal(size=(5, *shape)) * 10.0 ** random.integers(-2, 2, size=shape)).astype(numpy.float32)
        folder = self.folder / "probe"
        for kind, values in (("weights", weight), ("gradients", gradients)):
            (folder / kind).mkdir(parents=True)
            values.tofile(folder / kind / "w.bin")
        (folder / "job.json").write_text(json.dumps(
            {"dtype": "float32", "steps": 5, "lr_factors": factors, "parameters": [{"name": "w", "shape": shape}],
             "weights": str(folder / "weights"), "gradients": str(folder / "gradients"),
             "runs": [{"name": "run", "optimizer": NAME, "options": OPTIONS}]}))
        probe = pathlib.Path(TITAN).parent / "optimizer_probe"
        subprocess.run([probe, "--plugins", PLUGINS, "--job", folder / "job.json", "--out", folder / "out"], check=True,
                       env=environment(), timeout=HANG)
        found = numpy.fromfile(folder / "out/run/w.bin", numpy.float32).reshape(shape)
        expected = in_numpy(weight.astype(float), gradients.astype(float), factors, OPTIONS)
        numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        self.assertGreater(abs(found - weight).mean(), 1e-3)
        leaning = in_numpy(weight.astype(float), gradients.astype(float), factors, OPTIONS | {"lean": 0})
        self.assertGreater(abs(expected - leaning).max(), 1e-3)

    def test_layouts_equal_one_rank(self):
        for ranks, axis in ((2, "data_parallel_shard"), (2, "tensor_parallel"), (2, "pipeline_parallel")):
            out = self.folder / axis
            run = train(out, ranks, f"--parallelism.{axis}_degree", ranks)
            self.assertEqual(run.returncode, 0, run.stderr)
            numpy.testing.assert_allclose(losses(out), alone(), rtol=1e-9, err_msg=axis)

    def test_a_run_in_two_parts_equals_one_in_one_piece(self):
        assert_resumes_exactly(self, self.folder, *RECIPE, "--plugins.paths", PLUGINS)

    def test_a_run_goes_on_under_another_layout(self):
        saves = ["--checkpoint.enable", "--checkpoint.interval", "3", "--checkpoint.no_last_save_model_only"]
        run = train(self.out, 2, *saves, "--training.steps", "3")
        self.assertEqual(run.returncode, 0, run.stderr)
        for ranks, axis in ((2, "tensor_parallel"), (1, "data_parallel_shard")):
            out = self.folder / f"on_{axis}"
            run = train(out, ranks, f"--parallelism.{axis}_degree", ranks, *saves, "--checkpoint.initial_load_path",
                        self.out / "checkpoint/step-3", "--checkpoint.no_initial_load_model_only")
            self.assertEqual(run.returncode, 0, run.stderr)
            numpy.testing.assert_allclose(losses(out), alone()[3:], rtol=1e-9, err_msg=axis)

    def test_the_rule_is_placed_in_its_section_and_in_a_group(self):
        text = (ROOT / "experiments/three_moments/train.toml").read_text()
        bad = text.replace("beta3 = 0.999", "beta3 = 0.5")
        bad = bad.replace("[lr_scheduler]", '[optimizer.groups.head]\npatterns = ["output.weight"]\nbeta2 = 0.1\n\n[lr_scheduler]')
        recipe = self.write("bad.toml", bad)
        lines = bad.splitlines()
        run = titan_installed("train", "--job.config_file", recipe, "--plugins.paths", PLUGINS, "--job.dump_folder", self.out)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, f"bad.toml:{lines.index('beta3 = 0.5') + 1}:9: error: ", "beta3 must be >= beta2",
                          f"bad.toml:{lines.index('beta2 = 0.1') + 1}:9: error: ", "beta2 must be >= beta1")
        self.assert_nothing_was_written()

    def test_its_options_are_checked_like_any_other(self):
        run = titan_installed("train", *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", self.out, "--optimizer.beta2", "1.0",
                              "--optimizer.momentum", "0.9")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, f"option 'beta2' of optimizer '{NAME}' must be >= 0 and < 1, got 1", "momentum",
                          f"titan describe optimizer {NAME}")
        self.assert_nothing_was_written()

    def test_the_program_lists_and_describes_it(self):
        listed = titan_installed("list", "optimizer", "--path", PLUGINS)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertRegex(listed.stdout, rf"(?m)^optimizer +{NAME} +three_moments +1\.0\.0 ")
        described = titan_installed("describe", "optimizer", NAME, "--path", PLUGINS)
        self.assertEqual(described.returncode, 0, described.stderr)
        self.assert_holds(described.stdout, "beta3", "0.999", "StatefulOptimizer")

    def test_the_loss_falls_in_the_run_that_the_configuration_describes(self):
        run = titan_installed("train", *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", self.out, "--training.steps", "40")
        self.assertEqual(run.returncode, 0, run.stderr)
        values = losses(self.out)
        self.assertLess(sum(values[-10:]) / 10, values[0] - 0.8)
        self.assertRegex((self.out / "config.toml").read_text(), rf'(?m)^name = "{NAME}"$')
        self.assertEqual([line["step"] for line in metrics(self.out)], list(range(1, 41)))


if __name__ == "__main__":
    assert PREFIX.is_dir(), f"nothing is installed in {PREFIX}"
    main()
