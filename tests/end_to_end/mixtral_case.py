"""Runs of the mixture of experts of the model mixtral in float64, compared with one rank's losses, norms, load of
experts and biases. Used by mixtral_test.py and expert_parallel_test.py."""

import functools
import pathlib
import tempfile

import numpy
import safetensors.numpy

import layout_case
from harness import Case, metrics
from layout_case import degrees

LAYERS, EXPERTS, TOP_K, STEPS, RATE = 2, 8, 2, 6, 1e-3
AUXILIARY = "loss_metrics/global_avg_auxiliary_loss"  # logged if a model has auxiliary losses
SIZES = ["--model.dim", 64, "--model.n_layers", LAYERS, "--model.n_heads", 4, "--model.n_kv_heads", 2, "--model.hidden_dim", 32]
RECIPE = ["--job.config_file", "train_configs/mixtral_debug.toml", *SIZES, "--model.load_balance_coeff", RATE,
          "--training.seq_len", "64", "--training.local_batch_size", "1", "--training.global_batch_size", "8",
          "--training.steps", STEPS, "--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0.0",
          "--metrics.no_enable_tensorboard"]
DOUBLE = ["--training.dtype", "float64"]
SAVES = ["--checkpoint.enable", "--checkpoint.interval", "3", "--checkpoint.no_last_save_model_only"]
MEASURED = ["--metrics.loggers", "console,jsonl,expert_load", "--logger.expert_load.every", "2", "--logger.expert_load.each_expert",
            "--debug.fingerprints", "--debug.deterministic"]
SHARD = degrees(data_parallel_shard=-1)


def train(out, ranks, *arguments):
    return layout_case.train(RECIPE, out, ranks, *arguments)


def biases(folder):
    found = {}
    for path in sorted(folder.glob("weights*.safetensors")):
        for name, value in safetensors.numpy.load_file(path).items():
            if name.endswith(".expert_bias"):
                assert name not in found, name
                found[name] = value
    return found


def tagged(out, prefix):
    lines = [{tag: value for tag, value in line.items() if tag.startswith(prefix)} for line in metrics(out)]
    return [line for line in lines if line]


def curves(out, last=STEPS):
    logged = [[line[tag] for line in metrics(out) if tag in line] for tag in ("loss_metrics/global_avg_loss", "grad_norm", AUXILIARY)]
    return ([values for values in logged if values],
            (out / "fingerprints.jsonl").read_text(), tagged(out, "experts/"), biases(out / f"checkpoint/step-{last}"))


@functools.cache
def alone(*arguments):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run = train(folder, 1, *DOUBLE, *SAVES, *MEASURED, *arguments)
        assert run.returncode == 0, run.stderr
        return curves(pathlib.Path(folder))


class MixtralCase(Case):
    def assert_equals_one_rank(self, ranks, *arguments, same_load=True, model=()):
        """`same_load`: also compares the load of each microbatch, if the layout does not shard them; `model`: options
        of both runs."""
        out = pathlib.Path(tempfile.mkdtemp(prefix=f"run_{ranks}_", dir=self.folder))
        run = train(out, ranks, *DOUBLE, *SAVES, *MEASURED, *model, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        values, prints, load, last = curves(out)
        expected, expected_prints, expected_load, expected_last = alone(*model)
        self.assertEqual(prints, expected_prints, "initial weights or tokens")
        numpy.testing.assert_allclose(values, expected, rtol=1e-9)
        self.assertEqual(len(load), 4)  # steps 1, 2, 4, 6
        for found, line in zip(load, expected_load, strict=True):
            self.assertEqual(found.keys(), line.keys())
            for tag in line:  # other tags are of single microbatches of a rank
                if tag.startswith("experts/load/") or same_load:
                    self.assertAlmostEqual(found[tag], line[tag], 12, tag)
        self.assert_equal_biases(last, expected_last)

    def assert_equal_biases(self, found, expected):
        self.assertEqual(sorted(expected), [f"layers.{i}.moe.expert_bias" for i in range(LAYERS)])
        self.assertEqual(sorted(found), sorted(expected))
        for name, value in expected.items():
            self.assertEqual(value.dtype, numpy.float32)
            self.assertGreater(numpy.abs(value).max(), RATE / 2, "it never moved")
            numpy.testing.assert_array_equal(found[name], value, name)

    def assert_goes_on(self, written, read):
        """Three steps under the layout `written`, the remaining ones under each of `read`: (ranks, arguments)."""
        run = train(self.out, written[0], *DOUBLE, *SAVES, *written[1], "--training.steps", "3")
        self.assertEqual(run.returncode, 0, run.stderr)
        for ranks, arguments in read:
            out = pathlib.Path(tempfile.mkdtemp(prefix=f"on_{ranks}_", dir=self.folder))
            run = train(out, ranks, *DOUBLE, *SAVES, *arguments, "--checkpoint.initial_load_path", self.out / "checkpoint/step-3",
                        "--checkpoint.no_initial_load_model_only")
            self.assertEqual(run.returncode, 0, run.stderr)
            found = [line["loss_metrics/global_avg_loss"] for line in metrics(out)]
            numpy.testing.assert_allclose(found, alone()[0][0][3:], rtol=1e-9)
            self.assert_equal_biases(biases(out / f"checkpoint/step-{STEPS}"), alone()[3])
