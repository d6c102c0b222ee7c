"""experiments/soap, built against an installation: 20 steps of the published algorithm in NumPy, layouts, resume, and results.json."""

import os
import pathlib
import subprocess
import sys

import numpy
from safetensors.torch import load_file

from harness import ROOT, Case, losses, main
from installed import assert_resumes_exactly, build_project, train_installed

RECIPE = "experiments/soap/train.toml"
P = "--parallelism."
SMALL = ["--model.dim", "32", "--model.n_layers", "1", "--model.n_heads", "4", "--model.multiple_of", "32", "--training.dtype", "float64",
         "--training.local_batch_size", "4", "--training.global_batch_size", "4", "--lr_scheduler.warmup_steps", "0",
         "--lr_scheduler.decay_ratio", "0", "--debug.deterministic"]
STORED = ["--checkpoint.enable", "--checkpoint.no_last_save_model_only"]
BETA, EPS, DECAY, FREQUENCY, LONGEST, RATE = 0.95, 1e-8, 0.1, 5, 96, 3e-3
# w1 and w3 have a side of 96, the embedding and the head have one of 2,048, which gets no basis
OPTIONS = ["--optimizer.lr", RATE, "--optimizer.precondition_frequency", FREQUENCY, "--optimizer.max_precond_dim", LONGEST]
LAYOUTS = {"one": (1, []), "fsdp 2": (2, [P + "data_parallel_shard_degree", "2", "--training.local_batch_size", "2"]),
           "tp 2": (2, [P + "tensor_parallel_degree", "2"])}
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "soap"
    PLUGINS = build_project(ROOT / "experiments/soap", build) / "lib/titan/plugins"


def stored(folder):
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= {name: tensor.numpy() for name, tensor in load_file(path).items()}
    return found


class Reference:
    """Algorithm 3 of arXiv:2409.11321 for one parameter, as its authors' code runs it: no update in the first step, weight decay after
    the update, and columns sorted by their eigenvalues before each QR decomposition."""

    def __init__(self, weight, left, right):
        self.weight, self.bases = weight.copy(), [left, right]
        self.means = [None if basis is None else numpy.zeros_like(basis) for basis in self.bases]
        self.mean, self.square, self.t = numpy.zeros_like(weight), numpy.zeros_like(weight), 0

    def rotated(self, x):
        left, right = self.bases
        x = x if left is None else left.T @ x
        return x if right is None else x @ right

    def rotated_back(self, x):
        left, right = self.bases
        x = x if left is None else left @ x
        return x if right is None else x @ right.T

    def step(self, gradient):
        if self.t > 0:
            self.mean = BETA * self.mean + (1 - BETA) * gradient
            self.square = BETA * self.square + (1 - BETA) * self.rotated(gradient) ** 2
            size = RATE * numpy.sqrt(1 - BETA**self.t) / (1 - BETA**self.t)
            self.weight = self.weight - size * self.rotated_back(self.rotated(self.mean) / (numpy.sqrt(self.square) + EPS))
            self.weight = self.weight - RATE * DECAY * self.weight
        for side, (basis, product) in enumerate(zip(self.bases, (lambda g: g @ g.T, lambda g: g.T @ g), strict=True)):
            if basis is None:
                continue
            self.means[side] = BETA * self.means[side] + (1 - BETA) * product(gradient)
        if self.t > 0 and self.t % FREQUENCY == 0:
            for side in (0, 1):
                if self.bases[side] is None:
                    continue
                basis, mean = self.bases[side], self.means[side]
                order = numpy.argsort(-numpy.einsum("ij,ik,kj->j", basis, mean, basis))
                self.square = numpy.take(self.square, order, axis=side)
                self.bases[side], _ = numpy.linalg.qr(mean @ basis[:, order])
        self.t += 1


class SoapTest(Case):
    def launch(self, out, *arguments, ranks=1):
        return train_installed(ranks, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *SMALL, *arguments)

    def run_steps(self, out, *arguments, **options):
        run = self.launch(out, *arguments, **options)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def test_twenty_steps_equal_numpy(self):
        count = 21  # the first changes no weight
        self.run_steps(self.out, *OPTIONS, *STORED, "--training.steps", count, "--checkpoint.interval", 1, "--checkpoint.keep_latest_k", 0)
        steps = [stored(self.out / f"checkpoint/step-{step}") for step in range(1, count + 1)]
        # plain SGD with rate 1 shows the gradient of the first step
        plain = self.folder / "sgd"
        self.run_steps(plain, *STORED, "--training.steps", 1, "--optimizer.name", "SGD", "--optimizer.lr", 1, "--optimizer.weight_decay", 0)
        moved = stored(plain / "checkpoint/step-1")
        names = [name for name in steps[0] if not name.startswith("optim.")]
        references = {}
        for name in names:
            weight = steps[0][name]
            bases = [steps[0].get(f"optim.{side}_basis.{name}") for side in ("left", "right")]
            self.assertEqual([basis is not None for basis in bases],
                             [weight.ndim == 2 and length <= LONGEST for length in (weight.shape * 2)[:2]], name)
            references[name] = reference = Reference(weight, *bases)
            reference.step(weight - moved[name])
            for side, basis in zip(("left", "right"), bases, strict=True):
                if basis is None:
                    continue
                mean = steps[0][f"optim.{side}_mean.{name}"]
                numpy.testing.assert_allclose(mean, reference.means[side == "right"], rtol=1e-7, atol=1e-9 * abs(mean).max())
                numpy.testing.assert_allclose(basis.T @ basis, numpy.eye(len(basis)), atol=1e-12)
                seen = basis.T @ mean @ basis
                self.assertLess(abs(seen - numpy.diag(numpy.diag(seen))).max(), 2e-3 * numpy.trace(mean), name)
        changed = 0
        for before, after in zip(steps, steps[1:], strict=False):
            for name in names:
                mean = f"optim.exp_avg.{name}"
                references[name].step((after[mean] - BETA * before[mean]) / (1 - BETA))
                numpy.testing.assert_allclose(after[name], references[name].weight, rtol=1e-6, atol=1e-8, err_msg=name)
                changed += int((after[name] != before[name]).sum())
        self.assertGreater(changed, 20 * 10**5)
        self.assertEqual({reference.t for reference in references.values()}, {count})

    def test_layouts_equal_one_rank_and_go_on_from_each_other(self):
        flags = [*OPTIONS, *STORED, "--training.steps", 12]
        for name, (ranks, layout) in LAYOUTS.items():
            self.run_steps(self.folder / name, *flags, *layout, ranks=ranks)
        expected = losses(self.folder / "one")
        self.assertLess(expected[-1], expected[0] - 0.05, "nothing was learnt")
        for name in ("fsdp 2", "tp 2"):
            found = losses(self.folder / name)
            print(f"  {name}: losses differ by {max(abs(a / b - 1) for a, b in zip(found, expected, strict=True)):.1e}", flush=True)
            numpy.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)
        for first, second in (("fsdp 2", "tp 2"), ("tp 2", "one"), ("one", "fsdp 2")):
            out = self.folder / f"{first} {second}"
            self.run_steps(out, *flags, *LAYOUTS[first][1], "--training.steps", 7, ranks=LAYOUTS[first][0])
            said = self.run_steps(out, *flags, *LAYOUTS[second][1], ranks=LAYOUTS[second][0])
            self.assertIn("resumed after step 7", said)
            numpy.testing.assert_allclose(losses(out), expected, rtol=1e-9, err_msg=f"{first}, then {second}")

    def test_a_run_in_two_parts_equals_one_in_one_piece(self):
        assert_resumes_exactly(self, self.folder, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS,
                               "--optimizer.precondition_frequency", 2, "--model.dim", 64)

    def test_bfloat16_weights_are_refused_by_name(self):
        run = self.launch(self.out, "--training.dtype", "bfloat16")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "maintainers/soap decomposes matrices", 'set training.dtype = "float32"', "nothing was started")
        self.assert_nothing_was_written()

    def test_readme_and_figures_are_those_of_the_records(self):
        subprocess.run([sys.executable, ROOT / "experiments/soap/run.py", "--check"], check=True)


if __name__ == "__main__":
    main()
