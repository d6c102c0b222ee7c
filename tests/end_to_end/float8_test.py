"""Training in emulated float8 and MXFP8 goes the way of training in fp32; what cannot be is refused."""

import harness

FLOAT8 = ["--model.converters", "quantize.linear.float8", "--quantize.linear.float8.emulate"]
MX = ["--model.converters", "quantize.linear.mx", "--quantize.linear.mx.recipe_name", "mxfp8_emulated"]
LONG = ["--job.config_file", harness.DEBUG_CONFIG, "--training.steps", "200", "--training.seq_len", "32"]


class Float8(harness.Case):
    def final_loss(self, name, *arguments):
        """The mean over the last ten steps."""
        out = self.folder / name
        run = self.train(*arguments, config=LONG, out=out)
        losses = harness.losses(out)
        self.assertEqual(len(losses), 200)
        return sum(losses[-10:]) / 10, losses, run

    def test_ends_where_fp32_does(self):
        wide, wide_losses, _ = self.final_loss("wide")
        self.assertLess(wide, wide_losses[0] - 1.2, "nothing was learnt, so nothing is compared")
        for name, arguments in (("float8", FLOAT8), ("mx", MX)):
            narrow, losses, run = self.final_loss(name, *arguments)
            with self.subTest(name, wide=wide, narrow=narrow):
                self.assertLess(abs(narrow / wide - 1), 0.02)
                self.assertNotEqual(losses, wide_losses)  # it did compute in another way
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


if __name__ == "__main__":
    harness.main()
