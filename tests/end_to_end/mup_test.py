"""experiments/mup, built against an installation: at the base width the model is llama3; wider, its loss is that of transformers' Llama
with the multipliers in its weights. Layouts, a brief coordinate check, and results.json."""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.torch import load_file
from small_llama import drawn_tokens, llama_of, loss_of

from harness import ROOT, Case, losses, main, metrics
from installed import build_project, train_installed

RECIPE = "experiments/mup/train.toml"
P = "--parallelism."
WIDE, BASE = 128, 64
CONSTANT = ["--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0", "--debug.deterministic"]
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "mup"
    PLUGINS = build_project(ROOT / "experiments/mup", build) / "lib/titan/plugins"


def run_steps(out, *arguments, ranks=1, recipe=RECIPE):
    run = train_installed(ranks, "--job.config_file", recipe, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *CONSTANT, *arguments)
    assert run.returncode == 0, run.stderr
    return metrics(out)


LAYOUT_FLAGS = ["--training.dtype", "float64", "--training.steps", "6", "--training.global_batch_size", "4"]


@functools.cache
def of_one_rank():
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run_steps(pathlib.Path(folder), *LAYOUT_FLAGS)
        return losses(pathlib.Path(folder))


class MupTest(Case):
    def test_at_the_base_width_it_is_llama3(self):
        base = ["--model.dim", BASE, "--optimizer.groups.hidden.lr", "1e-2", "--training.steps", "5"]
        run_steps(self.folder / "mup", *base)
        plain = self.write("llama3.toml", (ROOT / RECIPE).read_text().replace("base_dim = 64\n", "").replace(
            'name = "maintainers/mup"\nflavor = "debugmodel"', 'name = "llama3"\nflavor = "3.0-8B"'))
        run_steps(self.folder / "llama3", *base, "--model.n_layers", "2", "--model.n_heads", "4", "--model.n_kv_heads", "4",
                  "--model.ffn_dim_multiplier", "1.125", "--model.multiple_of", "64", "--model.vocab_size", "2048", recipe=plain)
        self.assertEqual(losses(self.folder / "mup"), losses(self.folder / "llama3"))

    def test_wider_its_loss_is_that_of_a_llama_with_the_multipliers_in_its_weights(self):
        tokens, rows = drawn_tokens(self.folder, 1)
        run = train_installed(1, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", self.folder / "seed", *tokens,
                              "--checkpoint.enable", "--checkpoint.create_seed_checkpoint")
        self.assertEqual(run.returncode, 0, run.stderr)
        seed = self.folder / "seed/checkpoint/step-0"
        line = run_steps(self.out, *tokens)[0]
        model = llama_of(seed, torch.float32, hidden_size=WIDE, intermediate_size=3 * WIDE, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=4)
        ratio = WIDE / BASE
        with torch.no_grad():
            plain = loss_of(model, rows[0]).item()
            for layer in model.model.layers:  # scores divided by the width of a head, equal to 1 / sqrt at the base
                layer.self_attn.q_proj.weight /= ratio**0.5
            model.lm_head.weight /= ratio
        numpy.testing.assert_allclose(line["loss_metrics/global_avg_loss"], loss_of(model, rows[0]).item(), rtol=1e-6)
        self.assertGreater(abs(plain - line["loss_metrics/global_avg_loss"]), 1e-3, "the multipliers change the loss")
        # initial values: table 8 of the paper
        found = {}
        for path in seed.glob("*.safetensors"):
            found |= load_file(path)
        for name, expected in (("layers.0.attention.wq.weight", 0.02 / ratio**0.5), ("layers.0.feed_forward.w1.weight", 0.02 / ratio**0.5),
                               ("layers.1.feed_forward.w2.weight", 0.02 / ratio**0.5 / 2), ("tok_embeddings.weight", 1.0),
                               ("output.weight", 0.9866 / BASE**0.5)):  # the head's normal distribution ends at 3 standard deviations
            numpy.testing.assert_allclose(found[name].std().item(), expected, rtol=0.03, err_msg=name)

    def test_every_layout_equals_one_rank(self):
        expected = of_one_rank()
        self.assertLess(expected[-1], expected[0] - 0.2, "nothing was learnt")
        whole = [P + "data_parallel_shard_degree", "1"]
        for name, layout in (("fsdp", [P + "data_parallel_shard_degree", "2"]),
                             ("tp", [*whole, P + "tensor_parallel_degree", "2"]),
                             ("cp", [*whole, P + "context_parallel_degree", "2"]),
                             ("pp", [*whole, P + "pipeline_parallel_degree", "2"])):
            with self.subTest(name):
                run_steps(self.folder / name, *LAYOUT_FLAGS, *layout, ranks=2)
                numpy.testing.assert_allclose(losses(self.folder / name), expected, rtol=1e-9)

    def test_activations_grow_with_the_width_in_the_standard_parametrisation_only(self):
        tag, rate, grown = "activations/rms/layers.1.feed_forward", 0.01, {}
        for kind in ("mup", "standard"):
            sizes = []
            for width in (64, 256):
                base = BASE if kind == "mup" else width
                lines = run_steps(self.folder / f"{kind}_{width}", "--model.dim", width, "--model.base_dim", base, "--optimizer.lr", rate,
                                  "--optimizer.groups.hidden.lr", rate * base / width, "--training.steps", "8", "--metrics.loggers",
                                  "jsonl,activation_statistics", "--logger.activation_statistics.every", "1")
                sizes.append([line[tag] for line in lines if tag in line][-1])
            grown[kind] = sizes[1] / sizes[0]
        print(f"  growth from width 64 to 256: {grown}", flush=True)
        self.assertLess(grown["mup"], 2)
        self.assertGreater(grown["standard"], 2 * grown["mup"])

    def test_readme_and_figures_are_those_of_the_records(self):
        subprocess.run([sys.executable, ROOT / "experiments/mup/run.py", "--check"], check=True)


if __name__ == "__main__":
    main()
