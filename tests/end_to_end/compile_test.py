"""`[compile]`: the program with fused layers compared with the program without, and its messages. tests/parity has the layouts."""

from harness import Case, main, metrics

TINY = ["--training.steps", "4", "--training.seq_len", "64", "--training.local_batch_size", "2", "--debug.seed", "3"]
SAME_BITS = ["--compile.enable", "--compile_backend.fused.no_attention_inputs"]


class CompileTest(Case):
    def numbers(self, name, *arguments):
        out = self.folder / name
        run = self.train(*TINY, *arguments, out=out)
        return run, [(line["loss_metrics/global_avg_loss"], line["grad_norm"]) for line in metrics(out)]

    def test_it_changes_no_bit_where_it_promises_so_and_else_round_off(self):
        for dtype in ("float32", "bfloat16"):
            with self.subTest(dtype=dtype):
                precision = ["--training.mixed_precision_param", dtype]
                _, plain = self.numbers(f"plain_{dtype}", *precision)
                _, same = self.numbers(f"same_{dtype}", *precision, *SAME_BITS)
                self.assertEqual(len(plain), 4)
                self.assertEqual(same, plain)
                _, fused = self.numbers(f"fused_{dtype}", *precision, "--compile.enable")
                limit = 1e-4 if dtype == "float32" else 2e-2
                for mine, theirs in zip(fused, plain, strict=True):
                    for a, b in zip(mine, theirs, strict=True):
                        self.assertLessEqual(abs(a / b - 1), limit)

    def test_who_computes_where_is_shown(self):
        run, _ = self.numbers("shown", "--compile.enable", "--model.print_after_conversion")
        self.assertRegex(run.stderr, r"the model as this rank runs it:")
        self.assertRegex(run.stderr, r"fused in its projections")

    def test_what_others_compute_is_left_to_them_and_said(self):
        run, _ = self.numbers("lora", "--compile.enable", "--model.converters", "lora", "--converter.lora.targets", "wq,w2")
        self.assertRegex(run.stderr, r"does not fuse \d+ attention layers' projections because of lora")
        self.assertRegex(run.stderr, r"does not fuse \d+ feed-forward layers because of lora")

    def test_the_loss_alone_leaves_nothing_to_swap_which_is_said_once(self):
        _, plain = self.numbers("plain")
        run, found = self.numbers("loss", "--compile.enable", "--compile.components", "loss", "--model.print_after_conversion")
        self.assertEqual(found, plain)
        self.assertEqual(run.stderr.count("compile_backend 'fused' has nothing to do"), 1, run.stderr)
        self.assertNotRegex(run.stderr, r"\bfused in|: fused")
        run = self.train(*TINY, "--compile.enable", "--compile.components", "loss,optimizer", out=self.folder / "unknown", code=2)
        self.assert_holds(run.stderr, "compile.components has an item that must be one of 'model', 'loss', got 'optimizer'",
                          "nothing was started")

    def test_backends_that_are_not_there_are_refused(self):
        run = self.train(*TINY, "--compile.enable", "--compile.backend", "fusd", code=2)
        self.assert_holds(run.stderr, "unknown compile_backend 'fusd'", "did you mean 'fused'?")
        run = self.train(*TINY, "--compile.enable", "--compile.backend", "aot_eager", code=2)
        self.assert_holds(run.stderr, "as without [compile]", "compile.enable = false")


if __name__ == "__main__":
    main()
