"""experiments/ternary, built against an installation: judged by transformers' BitNet layers, layouts, resume, and results.json."""

import os
import pathlib
import subprocess
import sys

import numpy
import torch
from small_llama import drawn_tokens, llama_of, loss_of
from transformers.integrations.bitnet import AutoBitLinear, WeightQuant

from harness import ROOT, Case, losses, main, metrics
from installed import assert_resumes_exactly, build_project, train_installed

RECIPE = "experiments/ternary/train.toml"
P = "--parallelism."
SIZES = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
LLAMA = ["--model.flavor", "3.0-8B", "--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4", "--model.n_kv_heads", "2",
         "--model.ffn_dim_multiplier", "1.0", "--model.multiple_of", "64", "--model.vocab_size", "2048"]
RATE, STEPS = 1e-3, 20
CONSTANT = ["--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0", "--debug.deterministic"]
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "ternary"
    PLUGINS = build_project(ROOT / "experiments/ternary", build) / "lib/titan/plugins"


class WeightsOnly(torch.nn.Linear):
    def forward(self, x):
        return torch.nn.functional.linear(x, WeightQuant.apply(self.weight))


def with_layers(model, kind):
    """Replaces the linear layers of the blocks by layers of `kind` with the same weights."""
    for name, module in list(model.model.layers.named_modules()):
        if not isinstance(module, torch.nn.Linear):
            continue
        changed = kind(module.in_features, module.out_features, bias=False)
        changed.weight = module.weight
        model.model.layers.set_submodule(name, changed)
    return model


class TernaryTest(Case):
    def run_steps(self, out, *arguments, ranks=1):
        run = train_installed(ranks, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *CONSTANT, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return losses(out)

    def test_transformers_comes_to_the_same_losses(self):
        tokens, rows = drawn_tokens(self.folder, STEPS)
        flags = [*LLAMA, *tokens, "--training.max_norm", "1e9", "--optimizer.lr", RATE]
        self.run_steps_of_seed(flags)
        for name, kind, more in (("8-bit inputs", lambda *sizes, bias: AutoBitLinear(*sizes, bias=bias, online_quant=True), []),
                                 ("weights only", WeightsOnly, ["--converter.maintainers/ternary.no_quantize_inputs"])):
            with self.subTest(name):
                found = self.run_steps(self.folder / name, *flags, *more)
                model = with_layers(llama_of(self.folder / "seed/checkpoint/step-0", torch.float32, **SIZES), kind)
                optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
                expected, norms = [], []
                for of_step in rows:
                    loss = loss_of(model, of_step)
                    optimizer.zero_grad()
                    loss.backward()
                    norms.append(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
                    optimizer.step()
                    expected.append(loss.item())
                print(f"  {name}: losses differ by {max(abs(a - b) for a, b in zip(found, expected, strict=True)):.1e}", flush=True)
                numpy.testing.assert_allclose(found[0], expected[0], rtol=2e-6)
                numpy.testing.assert_allclose(metrics(self.folder / name)[0]["grad_norm"], norms[0], rtol=1e-4)
                # a weight at the edge between two values may be rounded differently
                numpy.testing.assert_allclose(found, expected, rtol=1e-5)
        plain = self.run_steps(self.folder / "plain", *flags, "--model.converters", "")
        self.assertGreater(abs(plain[0] - found[0]), 1e-4, "the converter changes the loss")

    def run_steps_of_seed(self, flags):
        run = train_installed(1, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", self.folder / "seed", *flags,
                              "--checkpoint.enable", "--checkpoint.create_seed_checkpoint")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_every_layout_equals_one_rank(self):
        flags = [*LLAMA, "--training.dtype", "float64", "--training.steps", "8", "--training.local_batch_size", "2", "--training.global_batch_size",
                 "4"]
        whole = [P + "data_parallel_shard_degree", "1"]
        tensor = ((2, "tp", [*whole, P + "tensor_parallel_degree", "2"]),
                  (4, "fsdp and tp, blocks run again", [P + "data_parallel_shard_degree", "2", P + "tensor_parallel_degree", "2",
                                                        "--activation_checkpoint.mode", "full"]))
        others = ((2, "fsdp", [P + "data_parallel_shard_degree", "2"]), (2, "pp", [*whole, P + "pipeline_parallel_degree", "2"]))
        # Sums of ternary weights times 8-bit inputs are multiples of one number, so many inputs of the next layer lie exactly between two
        # 8-bit values. The last bit rounds them, and it differs where tensor parallelism sums in another order.
        for kind, more, layouts, limit in (("weights", ["--converter.maintainers/ternary.no_quantize_inputs"], tensor, 1e-9),
                                           ("inputs", [], others, 1e-9), ("inputs", [], tensor, 1e-5)):
            expected = self.run_steps(self.folder / f"{kind} {limit}", *flags, *more)
            self.assertLess(expected[-1], expected[0] - 0.3, "nothing was learnt")
            for ranks, name, layout in layouts:
                with self.subTest(name, quantized=kind):
                    found = self.run_steps(self.folder / f"{kind} {name}", *flags, *more, *layout, ranks=ranks)
                    numpy.testing.assert_allclose(found, expected, rtol=limit)

    def test_a_run_in_two_parts_equals_one_in_one_piece(self):
        assert_resumes_exactly(self, self.folder, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS)

    def test_a_second_format_and_a_wrong_pattern_are_refused(self):
        for arguments, texts in ((["--model.converters", "maintainers/ternary,quantize.linear.float8", "--quantize.linear.float8.emulate"],
                                  ("maintainers/ternary", "quantize.linear.float8")),
                                 (["--converter.maintainers/ternary.layers", "layer.*"], ("layers matches no linear layer",))):
            run = train_installed(1, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", self.out, *arguments)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, *texts)
            self.assert_nothing_was_written()

    def test_readme_and_figures_are_those_of_the_records(self):
        subprocess.run([sys.executable, ROOT / "experiments/ternary/run.py", "--check"], check=True)


if __name__ == "__main__":
    main()
