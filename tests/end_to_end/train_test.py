"""What a run leaves behind, and that it can be repeated."""

import glob
import json
import unittest

from harness import DEBUG_CONFIG, ROOT, TINY, Case, losses, metrics, titan


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
        self.assertEqual(len(files), 1)
        events = EventAccumulator(files[0])
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
        # the tokens were the same: so are the counts, and not by chance the losses of other data
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
    unittest.main(verbosity=2)
