"""experiments/step_guard, built against an installation: it wraps the executor, runs each step twice and discards one in ten,
and the results are bitwise equal to those without it."""

import json
import os
import pathlib

from harness import ROOT, Case, main, metrics
from installed import PREFIX, build_project, run_checked, titan_installed, train_installed

RECIPE = "experiments/step_guard/train.toml"
GUARD = "maintainers/step_guard"
STEPS = 6
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "step_guard"
    PLUGINS = build_project(ROOT / "experiments/step_guard", build) / "lib/titan/plugins"
    run_checked("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")


class StepGuardTest(Case):
    def launch(self, out, ranks, *arguments, recipe=RECIPE):
        return train_installed(ranks, "--job.config_file", recipe, "--plugins.paths", PLUGINS, "--job.dump_folder", out,
                               "--training.steps", STEPS, "--debug.deterministic", "--debug.fingerprints", "--checkpoint.enable",
                               "--checkpoint.interval", STEPS // 2, "--checkpoint.no_last_save_model_only",
                               "--lr_scheduler.decay_ratio", "0", *arguments)

    def outcome(self, out):
        """Results of a run: losses, norms, rates and counters of each step, the data of each step, all weights, states and
        counters of each checkpoint."""
        kept = ("loss_metrics/global_avg_loss", "loss_metrics/global_max_loss", "grad_norm", "lr", "n_tokens_seen", "loss_scale")
        lines = [[line.get(name) for name in kept] for line in metrics(out)]
        self.assertEqual(len(lines), STEPS)
        files = {str(path.relative_to(out)): path.read_bytes() for path in sorted((out / "checkpoint").rglob("*"))
                 if path.suffix == ".safetensors" or path.name.startswith("state-")}
        self.assertTrue(any("optimizer" in name for name in files), files.keys())
        saved = [json.loads(path.read_text()) for path in sorted((out / "checkpoint").rglob("manifest.json"))]
        self.assertEqual(len(saved), 2)
        counters = [{name: value for name, value in manifest.items() if name not in ("time", "config", "lineage", "xxh3_128")}
                    for manifest in saved]
        return lines, (out / "fingerprints.jsonl").read_text(), files, counters

    def assert_guard_leaves_no_trace(self, ranks, *arguments):
        text = (ROOT / RECIPE).read_text()
        plain = self.write("plain.toml", text[:text.index("[parallelism]")] + text[text.index("[training]"):])
        without = self.launch(self.folder / "without", ranks, *arguments, recipe=plain)
        self.assertEqual(without.returncode, 0, without.stderr)
        guarded = self.launch(self.folder / "guarded", ranks, f"--parallelism.{GUARD}.drill_share", "0.4", *arguments)
        self.assertEqual(guarded.returncode, 0, guarded.stderr)
        self.assertNotIn("differed", guarded.stderr)
        drills = guarded.stderr.count("a drill; step ")
        self.assertTrue(0 < drills < STEPS, guarded.stderr)
        for found, expected in zip(self.outcome(self.folder / "guarded"), self.outcome(self.folder / "without"), strict=True):
            self.assertEqual(found, expected)

    def test_on_one_rank(self):
        self.assert_guard_leaves_no_trace(1, "--training.global_batch_size", "4")

    def test_under_replicas(self):
        self.assert_guard_leaves_no_trace(2, "--parallelism.data_parallel_replicate_degree", "2",
                                          "--parallelism.data_parallel_shard_degree", "1")

    def test_under_shards(self):
        self.assert_guard_leaves_no_trace(2, "--parallelism.data_parallel_shard_degree", "2",
                                          "--training.mixed_precision_param", "bfloat16", "--training.global_batch_size", "8")

    def test_with_weights_that_travel_in_float8(self):
        float8 = "--quantize.linear.float8."
        self.assert_guard_leaves_no_trace(2, "--parallelism.data_parallel_shard_degree", "2",
                                          "--model.converters", "quantize.linear.float8", f"{float8}emulate",
                                          f"{float8}enable_fsdp_float8_all_gather",
                                          f"{float8}precompute_float8_dynamic_scale_for_fsdp")

    def test_around_a_pipeline_with_a_tied_weight(self):
        self.assert_guard_leaves_no_trace(2, "--parallelism.pipeline_parallel_degree", "2", "--model.enable_weight_tying")

    def test_where_steps_overflow_float16(self):
        self.assert_guard_leaves_no_trace(1, "--training.mixed_precision_param", "float16", "--training.loss_scaling.initial", "1e11",
                                          "--training.loss_scaling.growth_interval", "2")
        self.assertIn("gradients overflowed float16", self.launch(
            self.folder / "again", 1, "--training.mixed_precision_param", "float16",
            "--training.loss_scaling.initial", "1e11").stderr)

    def test_is_refused_where_steps_cannot_be_undone(self):
        run = self.launch(self.out, 1, "--optimizer.early_step_in_backward", "--training.max_norm", "0")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, f"parallelism '{GUARD}' may repeat or skip a step",
                          "optimizer.early_step_in_backward = true", "nothing was started")
        self.assert_nothing_was_written()

    def test_the_program_says_what_it_takes_part_in(self):
        run = titan_installed("describe", "parallelism", GUARD, "--path", PLUGINS)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_holds(run.stdout, "ExecutorWrapper", "StepMember", "drill_share")


if __name__ == "__main__":
    assert PREFIX.is_dir(), f"nothing is installed in {PREFIX}"
    main()
