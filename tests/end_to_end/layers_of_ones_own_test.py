"""experiments/fused_layers and experiments/own_attention, built against an installation: layers that a plugin replaces after data
parallelism, and a custom attention class, equal one rank without them."""

import os
import pathlib

from harness import ROOT, Case, main, metrics
from installed import build_project, run_checked, titan_installed, train_installed

P = "--parallelism."
NUMBERS = ("loss_metrics/global_avg_loss", "grad_norm")
PLUGINS = {}


def setUpModule():
    for name in ("fused_layers", "own_attention"):
        build = pathlib.Path(os.environ["TITAN_WORK"]) / name
        PLUGINS[name] = build_project(ROOT / "experiments" / name, build) / "lib/titan/plugins"
        run_checked("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")


class LayersCase(Case):
    def run_steps(self, experiment, name, ranks, *arguments, code=0):
        """Four steps in float64; returns the run and its metrics."""
        out = self.folder / name
        run = train_installed(ranks, "--job.config_file", f"experiments/{experiment}/train.toml", "--plugins.paths",
                              PLUGINS[experiment], "--job.dump_folder", out, "--training.steps", "4", "--debug.deterministic",
                              *arguments)
        self.assertEqual(run.returncode, code, run.stderr)
        return run, metrics(out) if code == 0 else []

    def assert_same(self, mine, others, name):
        self.assertEqual(len(mine), 4, name)
        for line, other in zip(mine, others, strict=True):
            for number in NUMBERS:
                self.assertAlmostEqual(line[number] / other[number], 1, delta=1e-9, msg=f"{name}, step {line['step']}, {number}")


class SimulatedTest(LayersCase):
    def test_ranks_can_be_played_without_memory(self):
        for experiment, more in (("fused_layers", [P + "tensor_parallel_degree", "2"]),
                                 ("own_attention", [P + "context_parallel_degree", "2", P + "pipeline_parallel_degree", "2"])):
            run = titan_installed("estimate", "--ranks", 4, "--job.config_file", f"experiments/{experiment}/train.toml",
                                  "--plugins.paths", PLUGINS[experiment], "--job.dump_folder", self.out, *more)
            self.assertEqual(run.returncode, 0, run.stderr)


class FusedLayersTest(LayersCase):
    def test_it_equals_the_plain_layers_under_every_layout(self):
        _, plain = self.run_steps("fused_layers", "plain", 1, "--model.converters", "")
        full = ["--activation_checkpoint.mode", "full"]
        for name, ranks, more in (
                ("alone", 1, []),
                ("checkpointed", 1, full),
                ("fsdp", 2, ["--training.local_batch_size", "2"]),
                ("fsdp, checkpointed", 2, [*full, "--training.local_batch_size", "2"]),
                ("pipeline", 2, [P + "pipeline_parallel_degree", "2", *full]),
                ("tensor", 2, [P + "tensor_parallel_degree", "2"])):
            run, fused = self.run_steps("fused_layers", name, ranks, "--model.print_after_conversion", *more)
            self.assert_same(fused, plain, name)
            self.assert_holds(run.stderr, "the model as this rank runs it", "  ffn_norm: FusedNorm, weight [128]\n",
                              "  feed_forward: FeedForward, computed by maintainers/fused_layers\n")

    def test_who_computes_already_is_not_replaced_without_a_word(self):
        run, _ = self.run_steps("fused_layers", "lora", 1, "--model.converters", "lora,maintainers/fused_layers",
                                "--converter.lora.targets", "w1", code=2)
        self.assert_holds(run.stderr, "maintainers/fused_layers would replace the kernel that lora wraps in 'layers.0.feed_forward.w1'")


class OwnAttentionTest(LayersCase):
    def test_it_equals_one_rank_under_context_and_pipeline_parallelism(self):
        _, alone = self.run_steps("own_attention", "alone", 1)
        ring = [P + "context_parallel_rotate_method", "alltoall"]
        for name, ranks, more in (
                ("cp", 2, [P + "context_parallel_degree", "2"]),
                ("cp by a ring", 2, [P + "context_parallel_degree", "2", *ring]),
                ("pp", 2, [P + "pipeline_parallel_degree", "2"]),
                ("tp", 2, [P + "tensor_parallel_degree", "2"]),
                ("cp and pp, checkpointed", 4, [P + "context_parallel_degree", "2", P + "pipeline_parallel_degree", "2",
                                                "--activation_checkpoint.mode", "selective",
                                                "--activation_checkpoint.selective_ac_option", "op"])):
            self.assert_same(self.run_steps("own_attention", name, ranks, *more)[1], alone, name)

    def test_the_window_is_seen(self):
        _, narrow = self.run_steps("own_attention", "narrow", 1)
        _, wide = self.run_steps("own_attention", "wide", 1, "--model.window", "64")
        self.assertNotEqual(narrow[0][NUMBERS[0]], wide[0][NUMBERS[0]])


if __name__ == "__main__":
    main()
