"""experiments/three_moments, built against an installation: three states and a custom rule, judged by NumPy, under
several layouts."""

import os
import pathlib

import numpy
from safetensors.torch import load_file

from harness import ROOT, Case, losses, main, metrics, thorough
from installed import PREFIX, assert_resumes_exactly, build_project, titan_installed, train_installed

RECIPE = "experiments/three_moments/train.toml"
NEAR = 1e-9  # relative, in float64
LAYOUTS = {"one": (1, []), "fsdp 2": (2, ["--parallelism.data_parallel_shard_degree", "2", "--training.local_batch_size", "2"]),
           "tp 2": (2, ["--parallelism.tensor_parallel_degree", "2"])}
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "three_moments"
    PLUGINS = build_project(ROOT / "experiments/three_moments", build) / "lib/titan/plugins"


def stored(folder):
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= {name: tensor.numpy() for name, tensor in load_file(path).items()}
    return found


class ThreeMomentsTest(Case):
    def launch(self, layout, steps, out, *arguments, recipe=RECIPE):
        ranks, flags = LAYOUTS[layout]
        return train_installed(ranks, "--job.config_file", recipe, "--plugins.paths", PLUGINS, "--job.dump_folder", out,
                               "--training.steps", steps, "--training.dtype", "float64", "--training.global_batch_size", "4",
                               "--lr_scheduler.warmup_steps", "2", "--lr_scheduler.decay_ratio", "0", "--checkpoint.enable",
                               "--checkpoint.no_last_save_model_only", "--debug.deterministic", *flags, *arguments)

    def run_steps(self, *arguments, **options):
        run = self.launch(*arguments, **options)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def assert_near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        numpy.testing.assert_allclose(found, expected, rtol=NEAR, atol=0)

    def test_five_steps_equal_numpy(self):
        self.run_steps("one", 6, self.out, "--checkpoint.interval", 1, "--checkpoint.keep_latest_k", 0)
        steps = [stored(self.out / f"checkpoint/step-{step}") for step in range(1, 7)]
        rates = [line["lr"] for line in metrics(self.out)]
        names = [name for name in steps[0] if not name.startswith("optim.")]
        self.assertTrue(any("norm" in name for name in names))
        moved = 0
        for t in range(2, 7):
            before, after = steps[t - 2], steps[t - 1]
            for name in names:
                beta1, beta2, beta3, eps, skew = 0.9, 0.95, 0.99 if "norm" in name else 0.98, 1e-8, 0.5
                decay = 0.0 if "norm" in name else 0.1
                m, v, s = (after[f"optim.{state}.{name}"] for state in ("mean", "mean_square", "mean_cube"))
                g = (m - beta1 * before[f"optim.mean.{name}"]) / (1 - beta1)  # the gradient of the step
                numpy.testing.assert_allclose(v, beta2 * before[f"optim.mean_square.{name}"] + (1 - beta2) * g**2, rtol=1e-7, atol=1e-18)
                numpy.testing.assert_allclose(s, beta3 * before[f"optim.mean_cube.{name}"] + (1 - beta3) * g**3, rtol=1e-6, atol=1e-22)
                self.assertEqual(float(after[f"optim.step.{name}"].item()), t)
                m, v, s = m / (1 - beta1**t), v / (1 - beta2**t), s / (1 - beta3**t)
                d = numpy.sqrt(v) + eps
                update = m / d * (1 + skew * numpy.sign(m) * numpy.clip(s / d**3, -1, 1))
                expected = before[name] * (1 - rates[t - 1] * decay) - rates[t - 1] * update
                numpy.testing.assert_allclose(after[name], expected, rtol=NEAR, atol=1e-12, err_msg=f"{t} {name}")
                moved += int((after[name] != before[name]).sum())
        self.assertGreater(moved, 10**6)

    @thorough
    def test_layouts_equal_one_rank_and_go_on_from_each_other(self):
        for layout in LAYOUTS:
            self.run_steps(layout, 6, self.folder / layout)
        expected = losses(self.folder / "one")
        self.assertEqual(len(set(expected)), 6)
        for layout in ("fsdp 2", "tp 2"):
            self.assert_near(losses(self.folder / layout), expected)
        for first, second in (("fsdp 2", "tp 2"), ("tp 2", "one"), ("one", "fsdp 2")):
            self.run_steps(first, 3, self.folder / f"{first} {second}")
            said = self.run_steps(second, 6, self.folder / f"{first} {second}")
            self.assertIn("resumed after step 3", said)
            self.assert_near(losses(self.folder / f"{first} {second}"), expected)

    def test_a_run_in_two_parts_equals_one_in_one_piece(self):
        assert_resumes_exactly(self, self.folder, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS)

    def test_its_rule_speaks_at_the_line_of_the_run_and_of_a_group(self):
        text = (ROOT / RECIPE).read_text()
        for old, new, key in (("beta3 = 0.99", "beta3 = 0.5", "beta3 = 0.5"),
                              ('name = "maintainers/three_moments"\n', 'name = "maintainers/three_moments"\nbeta3 = 0.25\n', "beta3 = 0.25")):
            recipe = self.write("wrong.toml", text.replace(old, new))
            lines = recipe.read_text().splitlines()
            line = 1 + lines.index(key)
            run = self.launch("one", 1, self.out, recipe=recipe)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, f"wrong.toml:{line}:9: error: {key} is below beta2 = 0.95", "raise beta3",
                              "nothing was started")
            self.assert_nothing_was_written()

    def test_its_options_are_checked_like_any_other(self):
        run = self.launch("one", 1, self.out, "--optimizer.beta2", "1.0", "--optimizer.momentum", "0.9")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "option 'beta2' of optimizer 'maintainers/three_moments' must be ", "got 1", "momentum",
                          "titan describe optimizer maintainers/three_moments")
        self.assert_nothing_was_written()

    def test_the_program_lists_and_describes_it(self):
        listed = titan_installed("list", "optimizer", "--files", "--path", PLUGINS)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertRegex(listed.stdout, r"(?m)^optimizer +maintainers/three_moments +three_moments +1\.0\.0 ")
        described = titan_installed("describe", "optimizer", "maintainers/three_moments", "--path", PLUGINS)
        self.assertEqual(described.returncode, 0, described.stderr)
        self.assert_holds(described.stdout, "beta3", "0.98", "StatefulOptimizer")

    def test_the_loss_falls_in_the_run_that_the_configuration_describes(self):
        run = titan_installed("train", "--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", self.out,
                              "--training.steps", "40")
        self.assertEqual(run.returncode, 0, run.stderr)
        values = losses(self.out)
        self.assertLess(sum(values[-10:]) / 10, values[0] - 0.8)
        self.assertRegex((self.out / "config.toml").read_text(), r'(?m)^name = "maintainers/three_moments"$')

    def test_its_own_code_is_small(self):
        code = [line for path in sorted((ROOT / "experiments/three_moments").iterdir()) if path.suffix in (".h", ".cpp")
                for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith("//")]
        print(f"  {len(code)} lines of code", flush=True)
        self.assertLess(len(code), 120)


if __name__ == "__main__":
    assert PREFIX.is_dir(), f"nothing is installed in {PREFIX}"
    main()
