"""experiments/attention_entropy, built against an installation: its entropies are those of transformers for the same weights and
tokens, under every layout, and the run is unchanged."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import HANG, ROOT, Case, main, metrics
from installed import PREFIX, build_project, titan_installed, train_installed

RECIPE = "experiments/attention_entropy/train.toml"
NAME = "maintainers/attention_entropy"
LAYERS = ("layers.0.attention", "layers.1.attention")
ROWS, SEQ_LEN, STEPS = 4, 64, 3  # of the job, except the steps
# Layers with windows or chunks between layers with full attention: a model's first and second
# layer.
SMALL = ["--training.seq_len", SEQ_LEN, "--training.local_batch_size", "2", "--training.global_batch_size", ROWS,
         "--metrics.no_enable_tensorboard", "--metrics.loggers", f"console,jsonl,{NAME}", "--lr_scheduler.warmup_steps", "2",
         "--model.dim", 64, "--model.n_heads", 4, "--model.n_kv_heads", 2, "--model.moe_hidden_dim", 32, "--model.num_experts", 4]
WINDOWS_AND_SINKS = ["--job.config_file", "train_configs/gpt_oss_debug.toml", *SMALL, "--model.n_layers", 2, "--model.head_dim", 16,
                     "--model.sliding_window_size", 20, "--model.original_seq_len", 32]
CHUNKS = ["--job.config_file", "train_configs/llama4_debug.toml", *SMALL, "--model.n_layers", 2, "--model.hidden_dim", 96,
          "--model.every_n_layers_nope", 2, "--model.nope_layer_offset", 1, "--model.attention_chunk_size", 20,
          "--model.use_qk_norm", "--model.attn_temperature_tuning", "--model.floor_scale", 4]
CORPUS, TOKENIZER = ROOT / "tests/assets/corpus/train.jsonl", ROOT / "tests/assets/tokenizer"
# No update changes a weight, so all steps have the exported weights.
STILL = ["--optimizer.lr", "1e-30"]
WIDE = ["--training.dtype", "float64"]
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "attention_entropy"
    PLUGINS = build_project(ROOT / "experiments/attention_entropy", build) / "lib/titan/plugins"


def train(out, ranks, *arguments, steps=STEPS, recipe=("--job.config_file", RECIPE)):
    return train_installed(ranks, *recipe, "--plugins.paths", PLUGINS, "--job.dump_folder", out,
                           "--training.steps", steps, "--lr_scheduler.decay_ratio", "0", "--debug.deterministic", *arguments)


def seen(out):
    """The logger's own file: a list of entropies by step."""
    lines = [json.loads(line) for line in (out / "attention_entropy.jsonl").read_text().splitlines()]
    return {line["step"]: [line[layer] for layer in LAYERS] for line in lines}


def logged(out, tag):
    return [line[tag] for line in metrics(out) if tag in line]


@functools.cache
def alone():
    """One rank in float64: entropies and losses of each step."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        out = pathlib.Path(folder)
        run = train(out, 1, *WIDE)
        assert run.returncode == 0, run.stderr
        return seen(out), logged(out, "loss_metrics/global_avg_loss")


class AttentionEntropyTest(Case):
    def run_it(self, ranks, *arguments, name="run", **others):
        out = self.folder / name
        run = train(out, ranks, *arguments, **others)
        self.assertEqual(run.returncode, 0, run.stderr)
        return out

    def assert_near(self, found, expected, tolerance):
        self.assertEqual(sorted(found), sorted(expected))
        for step in expected:
            for value, right in zip(found[step], expected[step], strict=True):
                self.assertLess(abs(value - right), tolerance, f"step {step}: {found[step]} for {expected[step]}")

    def assert_equals_transformers(self, name, **recipe):
        learnt = self.run_it(1, "--optimizer.lr", "3e-2", "--checkpoint.enable", "--checkpoint.interval", "30", name=f"{name}_learnt",
                             steps=30, **recipe) / "checkpoint/step-30"  # attention with trained weights
        out = self.run_it(1, *STILL, "--checkpoint.enable", "--checkpoint.initial_load_path", learnt, name=name, **recipe)
        export = self.folder / f"{name}_export"
        run = titan_installed("convert", "to-hf", learnt, export)
        self.assertEqual(run.returncode, 0, run.stderr)
        referee = subprocess.run([sys.executable, ROOT / "tests/referee/attention_entropy_referee.py", export, CORPUS, TOKENIZER,
                                  str(ROWS), str(SEQ_LEN), str(STEPS)], capture_output=True, text=True, timeout=HANG)
        self.assertEqual(referee.returncode, 0, referee.stderr)
        expected = dict(enumerate(json.loads(referee.stdout), 1))
        print(f"{name}: entropies by transformers: {expected}, by the logger: {seen(out)}", flush=True)
        for place in range(len(LAYERS)):  # other tokens would show: steps differ by ten times the tolerance
            self.assertGreater(abs(expected[1][place] - expected[2][place]), 1e-4)
        self.assert_near(seen(out), expected, 1e-5)

    def test_equals_transformers(self):
        self.assert_equals_transformers("plain")

    def test_windows_and_sinks_equal_those_of_transformers(self):
        self.assert_equals_transformers("windows", recipe=WINDOWS_AND_SINKS)

    def test_chunks_equal_those_of_transformers(self):
        self.assert_equals_transformers("chunks", recipe=CHUNKS)

    def test_layouts_see_the_same_windows_and_sinks(self):
        """Tensor parallelism shards sinks with the heads, and documents hide keys too."""
        for name, arguments in (("rows", []), ("documents", ["--model.attn_type", "flex"])):
            expected = seen(self.run_it(1, *WIDE, *arguments, name=name, recipe=WINDOWS_AND_SINKS))
            found = self.run_it(2, *WIDE, *arguments, "--parallelism.tensor_parallel_degree", "2", name=f"{name}_tp",
                                recipe=WINDOWS_AND_SINKS)
            self.assert_near(seen(found), expected, 1e-9)

    def test_its_scalars_are_everybodys(self):
        out = self.run_it(1)
        for place, layer in enumerate(LAYERS):
            found = logged(out, "attention_entropy/" + layer)
            self.assertEqual(found, [values[place] for values in seen(out).values()])

    def test_layouts_and_recomputation_see_the_same(self):
        """Heads, layers or rows on other ranks, and layers that are recomputed."""
        rows = ["--training.local_batch_size", "1"]
        for name, ranks, arguments in (
                ("tp", 2, ["--parallelism.tensor_parallel_degree", "2"]),
                ("pp", 2, ["--parallelism.pipeline_parallel_degree", "2"]),
                ("fsdp", 2, ["--parallelism.data_parallel_shard_degree", "2"]),
                ("rows", 1, rows),
                ("full", 1, ["--activation_checkpoint.mode", "full"]),
                ("selective", 1, ["--activation_checkpoint.mode", "selective"])):
            with self.subTest(name):
                out = self.run_it(ranks, *WIDE, *arguments, name=name)
                self.assert_near(seen(out), alone()[0], 1e-9)
                for found, expected in zip(logged(out, "loss_metrics/global_avg_loss"), alone()[1], strict=True):
                    self.assertLess(abs(found / expected - 1), 1e-9)

    def test_the_run_does_not_notice(self):
        watched = self.run_it(1, "--debug.fingerprints", name="watched")
        plain = self.run_it(1, "--debug.fingerprints", "--metrics.loggers", "console,jsonl", name="plain")
        self.assertFalse((plain / "attention_entropy.jsonl").exists())
        for tag in ("loss_metrics/global_avg_loss", "grad_norm"):
            self.assertEqual(logged(watched, tag), logged(plain, tag))
            self.assertEqual(len(logged(plain, tag)), STEPS)

    def test_steps_that_are_not_due_and_validation_are_not_seen(self):
        out = self.run_it(1, f"--logger.{NAME}.every", "2", "--validation.enable", "--validation.dataset", "jsonl",
                          "--validation.dataset_path", CORPUS, "--validation.freq", "1", "--validation.steps", "1",
                          "--validation.seq_len", "64", "--validation.local_batch_size", "2")
        self.assertEqual(sorted(seen(out)), [1, 2])
        self.assertEqual(len(logged(out, "validation_metrics/loss")), STEPS)

    def test_a_layer_that_there_is_not_is_found_before_the_start(self):
        flag = f"--logger.{NAME}.layers"
        message = "logger 'maintainers/attention_entropy' looks at 'layers.9.attention', which fits no layer that attends"
        for arguments in ([], ["--dry-run"], ["--comm.mode", "fake_backend"]):
            run = train(self.out, 1, flag, "layers.9.attention", *arguments)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, message, "'layers.0.attention', 'layers.1.attention'", "nothing was started")
        run = train(self.out, 2, flag, "layers.9.attention", "--parallelism.pipeline_parallel_degree", "2")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, message)
        self.assert_nothing_was_written()

    def test_context_parallelism_is_refused(self):
        run = train(self.out, 1, "--dry-run", "--world-size", "2", "--parallelism.context_parallel_degree", "2")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "no rank has all keys of a query", NAME)

    def test_the_program_says_that_it_looks_at_tensors(self):
        run = titan_installed("describe", "logger", NAME, "--path", PLUGINS)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_holds(run.stdout, "TensorObserver", "layers")


if __name__ == "__main__":
    assert PREFIX.is_dir(), f"nothing is installed in {PREFIX}"
    main()
