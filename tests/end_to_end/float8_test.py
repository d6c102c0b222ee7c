"""Training in emulated float8 and MXFP8, also of experts, follows training in fp32; impossible configurations are refused."""

import os

import harness

FLOAT8 = ["--model.converters", "quantize.linear.float8", "--quantize.linear.float8.emulate"]
MX = ["--model.converters", "quantize.linear.mx", "--quantize.linear.mx.recipe_name", "mxfp8_emulated"]
STEPS = int(os.environ.get("TITAN_FLOAT8_STEPS", "60"))  # 200 in tools/long_checks.sh
LONG = ["--job.config_file", harness.DEBUG_CONFIG, "--training.steps", str(STEPS), "--training.seq_len", "32"]

EXPERTS = {
    "float8": ["--model.converters", "quantize.grouped_mm.float8", "--quantize.grouped_mm.float8.fqns", "experts",
               "--quantize.grouped_mm.float8.emulate"],
    "mx": ["--model.converters", "quantize.grouped_mm.mx", "--quantize.grouped_mm.mx.fqns", "experts",
           "--quantize.grouped_mm.mx.recipe_name", "mxfp8_emulated"],
}
FEW_STEPS = 8
SPARSE = ["--job.config_file", "train_configs/mixtral_debug.toml", "--training.steps", str(FEW_STEPS), "--training.seq_len", "64",
          "--training.local_batch_size", "2", "--training.global_batch_size", "4", "--lr_scheduler.warmup_steps", "0",
          "--lr_scheduler.decay_ratio", "0.0", "--metrics.no_enable_tensorboard"]
NARROW = ["--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4", "--model.n_kv_heads", "2", "--model.hidden_dim", "96"]


class Float8(harness.Case):
    def final_loss(self, name, *arguments):
        """The mean over the last ten steps."""
        out = self.folder / name
        run = self.train(*arguments, config=LONG, out=out)
        losses = harness.losses(out)
        self.assertEqual(len(losses), STEPS)
        return sum(losses[-10:]) / 10, losses, run

    @harness.thorough
    def test_ends_where_fp32_does(self):
        wide, wide_losses, _ = self.final_loss("wide")
        self.assertLess(wide, wide_losses[0] - 1.2, "nothing was learnt, so nothing is compared")
        for name, arguments in (("float8", FLOAT8), ("mx", MX)):
            narrow, losses, run = self.final_loss(name, *arguments)
            with self.subTest(name, wide=wide, narrow=narrow):
                self.assertLess(abs(narrow / wide - 1), 0.02)
                self.assertNotEqual(losses, wide_losses)  # the converter did change the results
                self.assert_holds(run.stderr, "converts 42 linear layers")

    def test_refuses_what_cannot_be(self):
        for arguments, text in (
                (FLOAT8[:2], "set quantize.linear.float8.emulate = true"),
                (MX[:2], 'set quantize.linear.mx.recipe_name = "mxfp8_emulated"'),
                (FLOAT8 + ["--quantize.linear.float8.recipe_name", "tensorwide"], "tensorwise"),
                (MX[:3] + ["mxfp4_emulated"], "mxfp8_emulated"),
                (FLOAT8 + ["--quantize.linear.float8.filter_fqns", "atention"], "did you mean 'attention'?"),
                (FLOAT8 + ["--quantize.linear.float8.enable_fsdp_float8_all_gather"],
                 "needs parallelism.data_parallel_shard_degree > 1")):
            with self.subTest(arguments):
                run = harness.titan("train", *harness.TINY, "--job.dump_folder", self.out, *arguments)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assert_holds(run.stderr, text)
                self.assert_nothing_was_written()

    def few_losses(self, name, *arguments, ranks=1):
        out = self.folder / name
        launch = ["launch", "--nproc", str(ranks), "--"] if ranks > 1 else []
        run = harness.titan(*launch, "train", *SPARSE, "--job.dump_folder", out, *arguments)
        self.assertEqual(run.returncode, 0, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        losses = harness.losses(out)
        self.assertEqual(len(losses), FEW_STEPS)
        return losses, run

    def assert_near(self, losses, expected, limit):
        for found, wanted in zip(losses, expected, strict=True):
            self.assertLess(abs(found / wanted - 1), limit)

    @harness.thorough
    def test_experts_go_the_way_of_fp32(self):
        wide, _ = self.few_losses("wide")
        self.assertLess(wide[-1], wide[0] - 0.2, "nothing was learnt, so nothing is compared")
        for name, arguments in EXPERTS.items():
            losses, run = self.few_losses(name, *arguments)
            with self.subTest(name, wide=wide, narrow=losses):
                self.assert_near(losses, wide, 2e-3)
                self.assertNotEqual(losses, wide)  # the converter did change the results
                self.assert_holds(run.stderr, f"{arguments[1]} (", "converts 12 layers of experts")

    @harness.thorough
    def test_experts_go_that_way_on_several_ranks(self):
        """Including pipelines and context parallelism, which torchtitan refuses with float8."""
        p = "--parallelism."
        shard = [f"{p}data_parallel_shard_degree", "-1"]
        for name, arguments in EXPERTS.items():
            alone, _ = self.few_losses(f"{name}_alone", *NARROW, *arguments)
            for what, layout in (("fsdp", [*shard, "--training.local_batch_size", "1"]),
                                 ("ep", [*shard, f"{p}expert_parallel_degree", "2"]),
                                 ("tp", [f"{p}tensor_parallel_degree", "2", f"{p}expert_tensor_parallel_degree", "2"]),
                                 ("cp", [f"{p}context_parallel_degree", "2"]),
                                 ("pp", [f"{p}pipeline_parallel_degree", "2", f"{p}pipeline_parallel_schedule", "ZBVZeroBubble",
                                         "--training.local_batch_size", "4"])):
                losses, _ = self.few_losses(f"{name}_{what}", *NARROW, *arguments, *layout, ranks=2)
                with self.subTest(name, layout=what, alone=alone, found=losses):
                    self.assert_near(losses, alone, 1e-4)  # a scale that is a power of two changes no digit

    def test_experts_refuse_what_cannot_be(self):
        dense = ["--job.config_file", harness.DEBUG_CONFIG, "--training.seq_len", "64"]
        for config, arguments, text in (
                (SPARSE, EXPERTS["float8"][:-1], "set quantize.grouped_mm.float8.emulate = true"),
                (SPARSE, EXPERTS["mx"][:-2], 'set quantize.grouped_mm.mx.recipe_name = "mxfp8_emulated"'),
                (SPARSE, EXPERTS["float8"][:2] + EXPERTS["float8"][-1:], "quantize.grouped_mm.float8.fqns is empty"),
                (SPARSE, [*EXPERTS["mx"], "--quantize.grouped_mm.mx.fqns", "expert.w1"], "did you mean 'experts.w1'?"),
                (SPARSE, [*EXPERTS["mx"], "--model.hidden_dim", "80"], "must be multiples of 32"),
                (SPARSE, [*EXPERTS["mx"], "--model.converters", "quantize.linear.float8,quantize.grouped_mm.mx"], "use one format"),
                (dense, EXPERTS["float8"], "the model has no layers of experts")):
            with self.subTest(arguments):
                run = harness.titan("train", *config, "--job.dump_folder", self.out, *arguments)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assert_holds(run.stderr, text)
                self.assert_nothing_was_written()


if __name__ == "__main__":
    harness.main()
