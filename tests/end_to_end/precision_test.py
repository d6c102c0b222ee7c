"""Narrow dtypes: float16 with a scaled loss, parameters in bfloat16; and updates inside backward, groups of parameters."""


from checkpoint_case import SMALL, CheckpointCase, complete_steps, whole_state
from harness import DEBUG_CONFIG, ROOT, losses, main, metrics, thorough, titan

HALF = ["--training.mixed_precision_param", "float16"]
STEPS = 6
PLAIN = ["--training.steps", str(STEPS), "--checkpoint.no_enable"]


def scales(folder):
    return [line["loss_scale"] for line in metrics(folder)]


class Float16Test(CheckpointCase):
    def test_losses_are_those_of_float32_but_for_rounding(self):
        self.train(*PLAIN, config=SMALL, out=self.folder / "wide")
        self.train(*PLAIN, *HALF, config=SMALL)
        for half, wide in zip(losses(self.out), losses(self.folder / "wide"), strict=True):
            self.assertAlmostEqual(half, wide, delta=2e-3 * wide)
        self.assertEqual(scales(self.out), [65536] * STEPS)

    def test_gradients_are_used_without_their_scale(self):
        """With SGD and without clipping: AdamW and clipping would cancel any factor."""
        sgd = [*PLAIN, "--optimizer.name", "SGD", "--optimizer.lr", "4", "--training.max_norm", "0",
               "--training.local_batch_size", "4"]
        for name, ranks, layout in (("one", 1, []), ("pipeline", 2, ["--parallelism.pipeline_parallel_degree", "2"]),
                                    ("shards", 2, ["--training.local_batch_size", "2"])):
            with self.subTest(name):
                found = {}
                for precision, flags in (("wide", []), ("half", HALF)):
                    self.out = self.folder / f"{name} {precision}"
                    self.run_ranks(ranks, *sgd, *layout, *flags)
                    found[precision] = metrics(self.out)
                for half, wide in zip(found["half"], found["wide"], strict=True):
                    for key, share in (("loss_metrics/global_avg_loss", 2e-3), ("grad_norm", 2e-2)):
                        self.assertAlmostEqual(float(half[key]) / wide[key], 1, delta=share, msg=key)
                moved = [line["loss_metrics/global_avg_loss"] for line in found["wide"]]
                self.assertGreater(moved[0] - moved[-1], 0.05, "the steps do move the weights")

    def test_an_overflow_leaves_the_step_out_and_halves_the_scale(self):
        run = self.train(*PLAIN, *HALF, "--training.loss_scaling.initial", "1e9", config=SMALL)
        found = scales(self.out)
        skipped = [i for i, (a, b) in enumerate(zip(found, found[1:])) if b < a]
        self.assertTrue(skipped, found)
        self.assertEqual([found[i + 1] / found[i] for i in skipped], [0.5] * len(skipped))
        self.assert_holds(run.stdout + run.stderr, "gradients overflowed float16 in step 1")

    def test_the_scale_grows_again(self):
        self.train(*PLAIN, *HALF, "--training.loss_scaling.growth_interval", "2", config=SMALL)
        self.assertEqual(scales(self.out), [65536 * 2 ** (i // 2) for i in range(STEPS)])

    def test_an_overflow_at_the_smallest_scale_ends_the_run(self):
        run = self.train(*PLAIN, *HALF, "--training.loss_scaling.initial", "1e30",
                         "--training.loss_scaling.minimum", "2e29", config=SMALL, code=1)
        self.assert_holds(run.stderr, "the gradients overflow float16 even at a loss scale of 2e+29",
                          "the weights were not changed by this step", "in training step 4")

    def test_a_resumed_run_goes_on_with_its_scale(self):
        flags = [*HALF, "--training.loss_scaling.growth_interval", "2", "--checkpoint.interval", "3"]
        self.train(*flags, "--training.steps", "6", config=SMALL, out=self.folder / "whole")
        self.train(*flags, "--training.steps", "3", "--lr_scheduler.total_steps", "6", config=SMALL)
        self.train(*flags, "--training.steps", "6", config=SMALL)
        whole, again = (metrics(folder)[-3:] for folder in (self.folder / "whole", self.out))
        for a, b in zip(whole, again, strict=True):
            for key in ("loss_metrics/global_avg_loss", "grad_norm", "loss_scale"):
                self.assertEqual(a[key], b[key], key)

    def test_ranks_leave_the_same_step_out(self):
        run = titan("launch", "--nproc", "2", "--", "train", *SMALL, *PLAIN, *HALF, "--training.loss_scaling.initial",
                    "1e9", "--job.dump_folder", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.train(*PLAIN, *HALF, "--training.loss_scaling.initial", "1e9", config=SMALL, out=self.folder / "alone")
        self.assertEqual(scales(self.out), scales(self.folder / "alone"))
        for a, b in zip(losses(self.out), losses(self.folder / "alone"), strict=True):
            self.assertAlmostEqual(a, b, delta=2e-3 * b)


class BFloat16Test(CheckpointCase):
    NARROW = ["--training.dtype", "bfloat16", "--training.mixed_precision_param", "bfloat16"]

    def test_parameters_gradients_and_states_are_stored_in_bfloat16(self):
        self.train(*self.NARROW, "--training.steps", "3", "--checkpoint.interval", "3", config=SMALL)
        state = whole_state(complete_steps(self.out / "checkpoint")[3])
        narrow = {name: str(tensor.dtype) for name, tensor in state.items() if not name.startswith("optim.step.")}
        self.assertEqual(set(narrow.values()), {"torch.bfloat16"}, narrow)

    def test_stochastic_rounding_keeps_small_updates(self):
        """Updates of a thousandth of a weight's last bit: rounding to nearest would lose all of them."""
        small = ["--optimizer.lr", "1e-6", "--optimizer.weight_decay", "0", "--lr_scheduler.warmup_steps", "1",
                 "--training.steps", "3", "--checkpoint.interval", "1"]
        moved = {}
        for name, flags in {"nearest": [], "stochastic": ["--optimizer.stochastic_rounding"]}.items():
            out = self.folder / name
            self.train(*self.NARROW, *small, *flags, config=SMALL, out=out)
            steps = complete_steps(out / "checkpoint")
            first, last = whole_state(steps[1]), whole_state(steps[3])
            weight = "output.weight"
            moved[name] = (first[weight] != last[weight]).float().mean().item()
        self.assertLess(moved["nearest"], 0.01)
        self.assertGreater(moved["stochastic"], 2 * moved["nearest"])


class EarlyStepTest(CheckpointCase):
    def test_updating_inside_backward_changes_no_result(self):
        self.check((2, []))

    @thorough
    def test_updating_inside_backward_changes_no_result_of_other_layouts(self):
        self.check((1, []), (2, ["--parallelism.data_parallel_replicate_degree", "2"]), (2, ["--parallelism.tensor_parallel_degree", "2"]))

    def check(self, *layouts):
        flags = [*PLAIN, "--training.max_norm", "0", "--training.local_batch_size", "1"]
        for ranks, layout in layouts:
            found = []
            for early in ([], ["--optimizer.early_step_in_backward"]):
                out = self.folder / f"{ranks}{len(found)}{'_'.join(layout)}"
                run = titan("launch", "--nproc", str(ranks), "--", "train", *SMALL, *flags, *layout, *early,
                            "--job.dump_folder", out)
                self.assertEqual(run.returncode, 0, run.stderr)
                found.append(losses(out))
                self.assertEqual("grad_norm" in metrics(out)[0], not early)
            self.assertEqual(*found, msg=f"{ranks} {layout}")


class GroupsTest(CheckpointCase):
    def config(self, *lines):
        """The small job with further lines."""
        text = (ROOT / DEBUG_CONFIG).read_text()
        return ["--job.config_file", self.write("groups.toml", text + "\n" + "\n".join(lines) + "\n"), *SMALL[2:]]

    def test_a_group_has_its_own_rates(self):
        """A tiny learning rate keeps a group constant; the others change as without groups."""
        config = self.config("[optimizer.groups.still]", 'patterns = ["*norm*", "tok_embeddings.*"]', "lr = 1e-30",
                             "weight_decay = 0.0")
        flags = ["--training.steps", "2", "--checkpoint.interval", "1"]
        self.train(*flags, config=config)
        steps = complete_steps(self.out / "checkpoint")
        first, last = whole_state(steps[1]), whole_state(steps[2])
        for name, tensor in first.items():
            if "." in name and not name.startswith("optim"):
                is_still = "norm" in name or name.startswith("tok_embeddings.")
                self.assertEqual((tensor == last[name]).all().item(), is_still, name)

    def test_states_of_groups_come_back(self):
        config = self.config("[optimizer.groups.norms]", 'patterns = ["*norm*"]', "lr = 1e-2", "weight_decay = 0.0")
        flags = ["--checkpoint.interval", "2", "--lr_scheduler.total_steps", "4"]
        self.train(*flags, "--training.steps", "4", config=config, out=self.folder / "whole")
        self.train(*flags, "--training.steps", "2", config=config)
        self.train(*flags, "--training.steps", "4", config=config)
        self.assertEqual(losses(self.out)[-2:], losses(self.folder / "whole")[-2:])

    def test_a_pattern_that_fits_nothing_is_an_error_before_anything_starts(self):
        config = self.config("[optimizer.groups.heads]", 'patterns = ["output.wight", "*norm*"]', "lr = 1e-4")
        run = self.train(config=config, code=2)
        self.assert_holds(run.stderr, "optimizer.groups.heads.patterns: ", "a name like 'output.wight'", "output.weight")
        self.assertNotIn("*norm*'", run.stderr)
        self.assert_nothing_was_written()


if __name__ == "__main__":
    main()
