"""Files of a run, and that a run is reproducible."""

import glob
import os
import pathlib
import json

from harness import DEBUG_CONFIG, ROOT, TINY, Case, losses, main, metrics, titan


class TrainTest(Case):
    def test_a_run_leaves_metrics_events_and_its_configuration(self):
        run = self.train()
        lines = metrics(self.out)
        self.assertEqual([line["step"] for line in lines], [1, 2, 3])
        for line in lines:
            self.assertGreater(line["loss_metrics/global_avg_loss"], 0)
            self.assertEqual(line["n_tokens_seen"], line["step"] * 2 * 64)
        console = [line for line in run.stdout.splitlines() if "loss" in line]
        self.assertEqual(len(console), 3, run.stdout)
        self.assertNotIn("\033", run.stdout, "colours belong to terminals")
        self.assertNotIn("mfu", run.stdout.lower(), "the peak of a CPU is not known")
        self.assertIn("training completed after step 3", run.stderr)
        self.assertTrue((self.out / "config.toml").is_file())
        self.assertEqual([p for p in self.out.rglob("*.tmp")], [])

    def test_tensorboard_shows_the_numbers_of_metrics_jsonl(self):
        import numpy
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        self.train()
        files = glob.glob(str(self.out / "tb" / "**" / "events.out.tfevents.*"), recursive=True)
        self.assertEqual(sorted(pathlib.Path(file).suffix for file in files), [".0", ".session"])
        events = EventAccumulator(str(pathlib.Path(files[0]).parent))
        events.Reload()
        lines = metrics(self.out)
        tags = set(lines[0]) - {"step", "wall_time"}
        self.assertEqual(set(events.Tags()["scalars"]), tags)
        for tag in tags:
            found = [(event.step, event.value) for event in events.Scalars(tag)]
            self.assertEqual(found, [(line["step"], float(numpy.float32(line[tag]))) for line in lines], tag)

    def test_the_written_configuration_resolves_to_itself(self):
        self.train("--optimizer.lr", "1e-3", "--model.rope_theta=10000")
        written = (self.out / "config.toml").read_text()
        again = titan("train", "--job.config_file", self.out / "config.toml", "--dry-run")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout, written)
        self.assertRegex(written, r"(?m)^lr = 0\.001$")
        self.assertRegex(written, r"(?m)^seq_len = 64$")

    def test_the_written_configuration_repeats_the_run(self):
        self.train()
        second = self.folder / "second"
        self.train(out=second, config=["--job.config_file", self.out / "config.toml"])
        self.assertEqual(losses(second), losses(self.out))

    def test_a_dry_run_writes_nothing(self):
        run = self.train("--dry-run")
        self.assertIn("6,163,712 parameters", run.stderr)
        self.assert_nothing_was_written()

    def test_the_layers_are_printed_after_conversion_when_asked_for(self):
        self.assertNotIn("the model after conversion", self.train("--dry-run").stderr)
        run = self.train("--dry-run", "--model.print_after_conversion", "--model.converters", "lora")
        self.assertEqual(run.stderr.count("the model after conversion"), 1)
        self.assert_holds(run.stderr, "layers.0 to layers.5, 6 layers that are alike: TransformerBlock",
                          "  attention.wq: Linear, weight [256, 256] frozen, computed by lora around it",
                          "  attention.wq.lora_a: Linear, weight [8, 256]")

    def test_a_list_is_emptied_by_a_flag(self):
        for empty in (["--model.converters="], ["--model.converters", ""], ["--model.converters", "[]"]):
            run = self.train("--dry-run", "--model.converters", "lora", *empty)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assert_holds(run.stdout, "converters = []")

    def test_one_member_of_a_flavors_table_leaves_the_others_alone(self):
        run = self.train("--dry-run", "--model.rope_scaling.low_freq_factor", "2")
        scaling = run.stdout.split("[model.rope_scaling]")[1].split("\n\n")[0]
        self.assert_holds(scaling, "scaling_factor = 8.0", "low_freq_factor = 2.0")

    def test_the_saved_configuration_is_json(self):
        self.train("--job.save_config_file", "config.json", "--training.steps", "1")
        saved = json.loads((self.out / "config.json").read_text())
        self.assertEqual(saved["training"]["seq_len"], 64)
        self.assertEqual(saved["optimizer"]["name"], "AdamW")

    def test_training_makes_the_loss_fall(self):
        self.train("--training.steps", "30", "--training.seq_len", "128")
        values = losses(self.out)
        self.assertLess(sum(values[-5:]) / 5, values[0] - 1)

    def test_rates_are_those_of_the_operations_and_the_time(self):
        """FLOPs per token by torchtitan's formula; the printed figures must agree with each other."""
        tokens, peak = 2 * 64, 3e12
        parameters, embedding = 6_163_712, 2048 * 256
        operations = 6 * (parameters - embedding) + 12 * 6 * 256 * 64  # blocks, width, tokens
        self.train("--metrics.peak_flops", peak)
        lines = metrics(self.out)
        for line in lines:
            rate = line["throughput(tps)"]
            self.assertAlmostEqual(rate * line["time_metrics/end_to_end(s)"] / tokens, 1, places=6)
            self.assertAlmostEqual(line["tflops"] * 1e12 / (rate * operations), 1, places=6)
            self.assertAlmostEqual(line["mfu(%)"] / 100 * peak / (rate * operations), 1, places=6)
        # the wall clock between two lines shows at least that time
        for before, line in zip(lines, lines[1:]):
            self.assertLessEqual(line["time_metrics/end_to_end(s)"], line["wall_time"] - before["wall_time"] + 0.01)


class NonFiniteTest(Case):
    """NaN or infinity ends the run before it reaches the weights: in the loss, and in gradients of a finite loss."""

    FAULTS = pathlib.Path(os.environ["TITAN_WORK"]).parent / "bad_plugins" / "fault"

    def spoil(self, kind, when, *arguments):
        """Corrupts the activations of the output layer in step 3."""
        self.out = self.folder / "_".join([kind, when, *arguments])
        run = self.train("--training.steps", "6", "--plugins.paths", self.FAULTS, "--parallelism.further", "test/fault",
                         f"--parallelism.test/fault.kind={kind}", f"--parallelism.test/fault.when={when}",
                         "--parallelism.test/fault.step=3", "--parallelism.test/fault.layer=1000", "--checkpoint.enable",
                         "--checkpoint.interval", "1", "--checkpoint.no_last_save_model_only", *arguments, code=1)
        self.assertIn("in training step 3", run.stderr)
        self.assertEqual([line["step"] for line in metrics(self.out)], [1, 2])
        self.assertEqual(sorted(path.name for path in (self.out / "checkpoint").iterdir()), ["step-1", "step-2"])
        return run.stderr

    def test_in_the_loss(self):
        self.assertRegex(self.spoil("nan", "forward"), "the loss is -?nan; the weights were not changed by this step")
        self.assertRegex(self.spoil("infinity", "forward"), "the loss is inf; the weights were not changed by this step")

    def test_in_the_gradients(self):
        for kind in ("nan", "infinity"):
            self.assertRegex(self.spoil(kind, "backward"),
                             r"the gradient norm is (-?nan|inf) at loss \d+\.\d+; the weights were not changed by this step")

    def test_in_the_loss_where_gradients_are_used_at_once(self):
        said = self.spoil("nan", "forward", "--optimizer.early_step_in_backward", "--training.max_norm=0")
        self.assertRegex(said, r"the loss is -?nan\.")
        self.assertNotIn("were not changed", said)


class MissingMemoryTest(Case):
    def test_what_lowers_memory_is_said(self):
        for when in ("forward", "backward"):
            run = self.train("--plugins.paths", NonFiniteTest.FAULTS, "--parallelism.further", "test/fault", "--parallelism.test/fault.kind=memory",
                             f"--parallelism.test/fault.when={when}", "--activation_checkpoint.mode", "none", out=self.folder / when, code=1)
            self.assertRegex(run.stderr, r"can't allocate memory: you tried to allocate 4503599627370496 bytes\..*\n"
                                         r"  in training step 2\n  to need less memory, lower training\.local_batch_size .*\n  'titan estimate' says")


class ConstructorTest(Case):
    def test_what_a_constructor_throws_names_where_its_component_was_chosen(self):
        run = self.train("--plugins.paths", NonFiniteTest.FAULTS, "--parallelism.further", "test/fault",
                         "--parallelism.test/fault.kind=constructor", code=3)
        self.assertIn("the table of faults is gone", run.stderr)
        self.assertIn("which was chosen by '--parallelism.further test/fault'", run.stderr)
        text = (ROOT / DEBUG_CONFIG).read_text() + "\n[parallelism]\n"
        recipe = self.write("recipe.toml", text + 'further = ["test/fault"]\n"test/fault" = { kind = "constructor" }\n')
        run = self.train("--plugins.paths", NonFiniteTest.FAULTS, config=["--job.config_file", recipe], code=3)
        self.assertIn(f"which was chosen at {recipe}:{text.count(chr(10)) + 1}:", run.stderr)


class RepeatTest(Case):
    def test_the_same_seed_gives_bitwise_equal_losses(self):
        first, second, other = (self.folder / name for name in ("first", "second", "other"))
        steps = ["--debug.deterministic", "--training.steps", "6"]
        self.train(*steps, out=first)
        self.train(*steps, out=second)
        self.train(*steps, "--debug.seed", "43", out=other)
        for tag in ("loss_metrics/global_avg_loss", "grad_norm"):
            values = [[line[tag].hex() for line in metrics(folder)] for folder in (first, second, other)]
            self.assertEqual(values[0], values[1])
            self.assertNotEqual(values[0], values[2])

    def test_accumulation_equals_one_larger_batch(self):
        one, two = self.folder / "one", self.folder / "two"
        steps = ["--training.steps", "6", "--training.global_batch_size", "2", "--debug.deterministic"]
        self.train(*steps, "--training.local_batch_size", "2", out=one)
        self.train(*steps, "--training.local_batch_size", "1", out=two)
        for a, b in zip(losses(one), losses(two), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-6)
        # the tokens are the same, so the counts are too, and equal losses are not due to chance
        self.assertEqual([m["n_tokens_seen"] for m in metrics(one)], [m["n_tokens_seen"] for m in metrics(two)])

    def test_an_unset_seed_is_said_and_repeats_the_run(self):
        config = (ROOT / DEBUG_CONFIG).read_text().replace("seed = 42", "")
        file = self.write("no_seed.toml", config)
        tiny = ["--job.config_file", file, *TINY[2:]]
        run = self.train(config=tiny)
        self.assertRegex(run.stderr, r"debug\.seed is not set; this run uses \d+")
        seed = run.stderr.split("this run uses ")[1].split()[0]
        second = self.folder / "second"
        self.train("--debug.seed", seed, config=tiny, out=second)
        self.assertEqual(losses(second), losses(self.out))



if __name__ == "__main__":
    main()
