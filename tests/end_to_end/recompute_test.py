"""[activation_checkpoint] for a user: every mode trains equally, a memory limit is kept, mistakes are reported at the start."""

import re

from harness import DEBUG_CONFIG, Case, losses, main, metrics

# Large enough that activations are most of the memory.
RECIPE = ["--job.config_file", DEBUG_CONFIG, "--training.seq_len", "256", "--training.local_batch_size", "8",
          "--training.global_batch_size", "8", "--training.steps", "3", "--model.dim", "128", "--model.n_layers", "6",
          "--metrics.no_enable_tensorboard", "--metrics.log_freq", "1", "--lr_scheduler.warmup_steps", "2", "--device.count_tensors"]
MIB = 2**20


def mode(name, *more):
    return ["--activation_checkpoint.mode", name, *more]


class RecomputeTest(Case):
    def run_with(self, name, *flags, code=0):
        return self.train(*flags, config=RECIPE, out=self.folder / name, code=code)

    def peak(self, name):
        """Peak bytes of tensors in the steps after the first."""
        return max(line["memory/max_active(GiB)"] for line in metrics(self.folder / name)[1:]) * 2**30

    def test_a_memory_limit_is_kept_with_as_little_recomputation_as_it_takes(self):
        self.run_with("none", *mode("none"))
        self.run_with("full", *mode("full"))
        least, most = self.peak("full"), self.peak("none")
        self.assertLess(least, 0.7 * most)
        limit = (least + most) / 2
        run = self.run_with("limit", *mode("memory_budget", "--activation_checkpoint.memory_limit", f"{limit / MIB:.0f}MiB"))
        said = run.stdout + run.stderr
        self.assert_holds(said, "activation_checkpoint.memory_limit: this rank needs", "activation checkpointing keeps results up to",
                          "layers.0")
        self.assertLess(self.peak("limit"), 1.02 * limit)
        self.assertGreater(self.peak("limit"), 0.85 * limit)
        self.assertEqual(losses(self.folder / "limit"), losses(self.folder / "none"))
        self.assertEqual(losses(self.folder / "full"), losses(self.folder / "none"))

        run = self.run_with("wide", *mode("memory_budget", "--activation_checkpoint.memory_limit", "20GiB"))
        self.assert_holds(run.stdout + run.stderr, "everything fits without recomputation")
        self.assertAlmostEqual(self.peak("wide"), most, delta=0.01 * most)

    def test_a_limit_that_cannot_be_kept_is_an_error_before_anything_starts(self):
        run = self.run_with("tight", *mode("memory_budget", "--activation_checkpoint.memory_limit", "8MiB"), code=2)
        self.assert_holds(run.stderr, "activation_checkpoint.memory_limit = 0.008 GiB is not enough", "still needs",
                          "titan estimate")
        self.assert_nothing_was_written(self.folder / "tight")
        run = self.run_with("full", *mode("full", "--activation_checkpoint.memory_limit", "8GiB"), code=2)
        self.assert_holds(run.stderr, 'has no effect with activation_checkpoint.mode = "full"', 'mode = "memory_budget"')

    def test_a_choice_of_blocks_that_is_none_is_found_by_the_plugins_own_rule(self):
        run = self.run_with("none", *mode("selective", "--activation_checkpoint.selective_ac_option", "x2"), code=2)
        self.assert_holds(run.stderr, "activation_checkpoint.selective_ac_option must be a number of blocks or 'op', got 'x2'",
                          'default "2"', "nothing was started")

    def test_debug_says_what_each_block_keeps(self):
        run = self.run_with("debug", *mode("selective", "--activation_checkpoint.selective_ac_option", "op",
                                           "--activation_checkpoint.debug"))
        blocks = re.findall(r"activation checkpointing of (layers\.\d): keeps its input .* and 5 of 8 results",
                            run.stdout + run.stderr)
        self.assertEqual(blocks, [f"layers.{i}" for i in range(6)])

    def test_an_unknown_mode_names_the_nearest(self):
        run = self.run_with("wrong", *mode("slective"), code=2)
        self.assert_holds(run.stderr, "unknown activation_checkpoint 'slective'", "did you mean 'selective'?")


if __name__ == "__main__":
    main()
