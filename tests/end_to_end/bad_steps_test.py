"""Steps that go wrong: watcher 'outliers' skips a step on bad rows, watcher 'replay' finds a rank that computes wrong bits. A plugin of
tests/bad_plugins flips the bits."""

import json
import math
import os
import pathlib
import random
import shutil

import numpy

from harness import HANG, Case, main, metrics, thorough, titan

BIT_FLIP = pathlib.Path(os.environ["TITAN_PROGRAM"]).parent.parent / "tests/bad_plugins/bit_flip"
FLIP = 'parallelism."test/bit_flip"'
WORDS = "the of and to in is that it was for on are as with his they at be this from".split()
BAD_DOCUMENT = 430  # its text is unlike all others
LOSS, NORM = "loss_metrics/global_avg_loss", "grad_norm"

RECIPE = """
[metrics]
log_freq = 1
enable_tensorboard = false

[model]
name = "llama3"
flavor = "debugmodel"
dim = 32
n_layers = 2
n_heads = 2
hf_assets_path = "./tests/assets/tokenizer"

[optimizer]
name = "AdamW"
lr = 1e-2

[lr_scheduler]
warmup_steps = 2
decay_ratio = 0

[training]
dataset = "jsonl"
dataset_path = "{data}"
local_batch_size = 4
global_batch_size = 4
seq_len = 64
mixed_precision_param = "float32"

[activation_checkpoint]
mode = "none"

[debug]
seed = 42
deterministic = true
"""
LAYOUTS = {"alone": (1, []),
           "ddp": (2, ["--training.local_batch_size", 2, "--parallelism.data_parallel_replicate_degree", 2,
                       "--parallelism.data_parallel_shard_degree", 1]),
           "three": (3, ["--training.local_batch_size", 2, "--training.global_batch_size", 6, "--parallelism.data_parallel_replicate_degree", 3,
                         "--parallelism.data_parallel_shard_degree", 1]),
           "three shards": (3, ["--training.local_batch_size", 2, "--training.global_batch_size", 6,
                                "--parallelism.data_parallel_shard_degree", 3]),
           "fsdp": (2, ["--training.local_batch_size", 2, "--parallelism.data_parallel_shard_degree", 2])}


class BadStepsCase(Case):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        documents = [" ".join(draw.choice(WORDS) for _ in range(60)) for _ in range(700)]
        documents[BAD_DOCUMENT] = " ".join("".join(draw.choice("qxzjkvwy#%&") for _ in range(6)) for _ in range(12))
        self.data = self.write("data.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in documents))

    def run_job(self, name, steps, tables, *flags, layout="alone", code=0):
        """Trains into the folder `name`; returns what was printed. `tables`: TOML before that of the recipe."""
        recipe = self.write(f"{name}.toml", tables + RECIPE.format(data=self.data))
        ranks, axes = LAYOUTS[layout]
        words = ["train", "--job.config_file", recipe, "--job.dump_folder", self.folder / name, "--training.steps", steps, *axes, *flags]
        run = titan(*([] if ranks == 1 else ["launch", "--nproc", ranks, "--"]), *words, timeout=HANG)
        text = run.stdout + run.stderr
        self.assertEqual(run.returncode, code, text)
        return text

    def numbers(self, name, tag):
        return {line["step"]: line[tag] for line in metrics(self.folder / name) if tag in line}

    def losses(self, name):
        return list(self.numbers(name, LOSS).values())


OUTLIERS = """
[job]
watchers = ["outliers"]

[watcher.outliers]
window = 32
minimum = 16
"""


def skipped_by_the_rule(values_of_steps, window, minimum, sigmas):
    """OLMo-core's rule in NumPy: the steps whose loss or norm is too large, judged by the committed steps before."""
    kept, skipped = [[] for _ in values_of_steps], []
    for step in values_of_steps[0]:
        values = [of_steps[step] for of_steps in values_of_steps]
        limits = [numpy.mean(past[-window:]) + sigmas * numpy.std(past[-window:], ddof=1) if len(past) >= minimum else math.inf
                  for past in kept]
        if any(not math.isfinite(value) or value > limit for value, limit in zip(values, limits)):
            skipped.append(step)
            continue
        for past, value in zip(kept, values):
            past.append(value)
    return skipped


class OutlierTest(BadStepsCase):
    def test_bad_rows_are_skipped_as_numpy_says_and_named(self):
        text = self.run_job("out", 115, OUTLIERS)
        loss, norm = self.numbers("out", LOSS), self.numbers("out", NORM)
        expected = skipped_by_the_rule([loss, norm], 32, 16, 6)
        found = sorted(self.numbers("out", "outliers/skipped_loss"))
        self.assertEqual(found, expected)
        self.assertTrue(1 <= len(found) <= 5 and min(found) > 90, found)
        for step in found:
            self.assert_holds(text, f"step {step} is skipped: loss ", f"step {step} used rows 0 to 3 of its global batch; the greatest losses")
        self.assertEqual(self.numbers("out", "outliers/skipped_steps")[115], len(found))
        events = [json.loads(line) for line in (self.folder / "out/history.jsonl").read_text().splitlines()]
        undone = [event for event in events if event["event"] == "undone"]
        self.assertEqual([(event["step"], event["attempt"], event["verdict"]) for event in undone], [(step, 1, "skip") for step in found])
        page = self.folder / "report.html"
        report = titan("report", self.folder / "out", "--output", page)
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assert_holds(page.read_text(), "Skipped and repeated steps", f"step {found[0]} is skipped: loss ")


    @thorough
    def test_a_resumed_run_judges_like_the_whole_one_under_any_layout(self):
        saves = ["--checkpoint.enable", "--checkpoint.interval", 40, "--checkpoint.no_last_save_model_only"]
        self.run_job("whole", 112, OUTLIERS, *saves)
        skipped = sorted(self.numbers("whole", "outliers/skipped_loss"))
        self.assertTrue(skipped and min(skipped) > 80, skipped)
        for layout in ("alone", "ddp", "fsdp"):
            with self.subTest(layout):
                shutil.copytree(self.folder / "whole", self.folder / layout)
                shutil.rmtree(self.folder / layout / "checkpoint/step-112")
                self.assert_holds(self.run_job(layout, 112, OUTLIERS, *saves, layout=layout), "resumed after step 80")
                self.assertEqual(sorted(self.numbers(layout, "outliers/skipped_loss")), skipped)
        self.assertEqual(self.losses("alone")[-30:], self.losses("whole")[-30:])
        files = [{path.name: path.read_bytes() for path in (self.folder / name / "checkpoint/step-112").iterdir()
                  if path.name.startswith("state-") or path.suffix == ".safetensors"} for name in ("whole", "alone")]
        self.assertEqual(files[0], files[1])
        state = json.loads(files[0]["state-rank-00000.json"])["watchers"]["outliers"]
        committed = [value for step, value in self.numbers("whole", LOSS).items() if step not in skipped]
        self.assertEqual(state["losses"]["window"], committed[-32:])
        self.assertEqual(state["skipped"], len(skipped))

    @thorough
    def test_values_that_are_not_finite_stay_out_of_the_window(self):
        fault = """
[plugins]
paths = ["{0}"]

[parallelism]
further = ["test/fault"]

[parallelism."test/fault"]
kind = "nan"
step = 20
""".format(BIT_FLIP.parent / "fault")
        text = self.run_job("out", 60, OUTLIERS + fault)
        self.assert_holds(text, "step 20 is skipped: loss nan and gradient norm nan are not finite")
        self.assertEqual(text.count("is skipped"), 1, text)
        text = self.run_job("strict", 60, OUTLIERS + "skip_nonfinite = false\n" + fault, code=1)
        self.assert_holds(text, "the loss is nan; the weights were not changed by this step")

    @thorough
    def test_too_many_skipped_steps_in_a_row_end_the_run(self):
        tables = OUTLIERS.replace("window = 32", "window = 2").replace("minimum = 16", "minimum = 2\nsigmas = 1e-9\nmost_in_row = 3")
        text = self.run_job("out", 60, tables, code=1)
        self.assert_holds(text, "would be skipped as an outlier after 3 skipped steps in a row (watcher.outliers.most_in_row = 3)")

    @thorough
    def test_the_rule_of_the_greatest_first_value(self):
        tables = OUTLIERS + "sigmas = 0\ntimes_largest = 0.5\nlargest_of = 4\nmost_in_row = 2\n"
        text = self.run_job("out", 30, tables, code=1)
        loss, norm = self.numbers("out", LOSS), self.numbers("out", NORM)
        first = {name: max(values[step] for step in range(1, 5)) for name, values in (("loss", loss), ("norm", norm))}
        large = [step for step in range(5, 8) if loss[step] >= first["loss"] / 2 or norm[step] >= first["norm"] / 2] if 7 in loss else [5, 6]
        self.assertEqual(sorted(self.numbers("out", "outliers/skipped_loss")), large[:2])
        self.assert_holds(text, "0.5 times the greatest of the first 4 steps")


REPLAY = """
[job]
watchers = ["replay"{more}]

[watcher.replay]
{options}

[plugins]
paths = ["{paths}"]

[parallelism]
further = [{further}]
"""


def replay(options="interval = 2", flip="", more=""):
    further = f'"test/bit_flip"]\n\n[{FLIP}]\n{flip}\n#' if flip else ""
    return REPLAY.format(options=options, more=more, paths=BIT_FLIP, further=further)


class ReplayTest(BadStepsCase):
    def assert_a_passing_fault_leaves_no_trace(self, layout, rank):
        self.run_job("plain", 6, "", layout=layout)
        flip = f'rank = {rank}\nstep = 4\nlayer = 2\ncall = 2'
        text = self.run_job("flipped", 6, replay(flip=flip), layout=layout)
        other = 1 - rank
        self.assert_holds(text, "step 4 gave different bits when it was run again:", f"rank {rank} (",
                          "): its second run of three gave other bits than the other two, which agree; the first difference is in the "
                          "output of 'layers.1'; a passing fault so far, number 1 of this rank")
        self.assertNotIn(f"rank {other} (", text)
        self.assertEqual(self.losses("flipped"), self.losses("plain"))
        self.assertEqual(self.numbers("flipped", NORM), self.numbers("plain", NORM))
        self.assertEqual(self.numbers("flipped", "replay/faults"), {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1})
        unseen = self.run_job("unseen", 6, replay(options="interval = 5", flip=flip.replace("call = 2", "call = 1")), layout=layout)
        self.assertNotIn("different bits", unseen)
        self.assertNotEqual(self.losses("unseen"), self.losses("plain"))

    def test_a_passing_fault_is_found_and_repeated(self):
        self.assert_a_passing_fault_leaves_no_trace("alone", 0)

    @thorough
    def test_a_passing_fault_of_one_replica(self):
        self.assert_a_passing_fault_leaves_no_trace("ddp", 1)

    @thorough
    def test_a_passing_fault_of_one_shard(self):
        self.assert_a_passing_fault_leaves_no_trace("fsdp", 1)

    def assert_a_lasting_fault_is_named(self, layout, rank):
        flip = f'rank = {rank}\nstep = 5\nlayer = 2\nkind = "lasting"'
        saves = ["--checkpoint.enable", "--checkpoint.interval", 50, "--checkpoint.no_last_save_model_only"]
        text = self.run_job("out", 12, replay("interval = 3\nend = true", flip), *saves, layout=layout, code=17)
        self.assert_holds(text, "step 6 gave different bits", f"rank {rank} (", "its three runs gave three different results",
                          "a lasting fault, number 2 of this rank", "the step is skipped, and the run ends after a checkpoint",
                          "the run ends after step 6 with exit code 17", "stopped by a plugin after step 6, which is saved")
        self.assertNotIn(f"rank {1 - rank} (", text)
        state = json.loads((self.folder / "out/checkpoint/step-6/state-rank-00000.json").read_text())["watchers"]["replay"]
        self.assertEqual([(entry["rank"], entry["faults"]) for entry in state["ranks"]], [(rank, 3)])
        again = self.run_job("out", 12, replay("interval = 3\nend = true"), *saves, layout=layout)
        self.assert_holds(again, "resumed after step 6", "training completed after step 12")
        text = self.run_job("stays", 12, replay("interval = 3", flip), layout=layout, code=1)
        self.assert_holds(text, "No attempt of 3 (watcher.replay.attempts) was reproduced")

    @thorough
    def test_a_lasting_fault_of_one_rank_alone(self):
        self.assert_a_lasting_fault_is_named("alone", 0)

    @thorough
    def test_a_lasting_fault_of_one_replica(self):
        self.assert_a_lasting_fault_is_named("ddp", 1)

    @thorough
    def test_a_lasting_fault_of_one_shard(self):
        self.assert_a_lasting_fault_is_named("fsdp", 1)

    @thorough
    def test_a_device_that_repeats_its_fault_shows_where_rows_are_exchanged(self):
        flip = 'rank = 1\nstep = 5\nlayer = 2\nkind = "stuck"'
        unseen = self.run_job("unseen", 8, replay("interval = 2", flip), layout="three")
        self.assertNotIn("different bits", unseen)
        for layout in ("three", "three shards"):
            text = self.run_job(layout, 8, replay("interval = 2\nexchange = true\nend = true", flip), layout=layout, code=17)
            self.assert_holds(text, "step 6 gave different bits", "rank 1 (", "its runs are equal, but two other ranks gave other bits for "
                              "the same rows", "a lasting fault, number 2 of this rank", "exit code 17")
            self.assertNotRegex(text, r"rank [02] \(")
        text = self.run_job("two", 8, replay("interval = 2\nexchange = true", flip), layout="ddp", code=1)
        self.assert_holds(text, "rank 0 (", "rank 1 (", "one of the two is wrong")

    @thorough
    def test_exchanged_rows_change_nothing(self):
        for layout in ("three", "fsdp"):
            self.run_job("plain " + layout, 6, "", "--training.local_batch_size", 1, layout=layout)
            text = self.run_job("exchanged " + layout, 6, replay("interval = 2\nexchange = true"), "--training.local_batch_size", 1, layout=layout)
            self.assertNotIn("different bits", text)
            self.assertEqual(self.losses("exchanged " + layout), self.losses("plain " + layout))
            self.assertEqual(self.numbers("exchanged " + layout, NORM), self.numbers("plain " + layout, NORM))

    @thorough
    def test_weights_that_differ_between_replicas_are_found(self):
        options = "interval = 100\ncompare_weights_every = 2"
        text = self.run_job("out", 8, replay(options, 'rank = 1\nstep = 5\nkind = "update"'), layout="ddp", code=1)
        self.assert_holds(text, "after step 6 copies of ", " weights differ between ranks, the first of this rank is 'tok_embeddings.weight'",
                          "the weights were last found equal after step 4")
        self.run_job("equal", 8, replay(options), layout="ddp")
        self.assert_holds(self.run_job("none", 8, replay(options), layout="fsdp"), "no two ranks hold the same weights")

    @thorough
    def test_an_outlier_is_run_again_and_replayed(self):
        """The flip makes the first run of a step an outlier; the second run, which is replayed, is no outlier."""
        both = OUTLIERS.replace('"outliers"', '"outliers", "replay"') + "rerun = true\n"
        tables = both + replay("interval = 1000", "step = 50\nlayer = 2\ncall = 1\nbit = 31\nelements = 8192").split("\n\n", 1)[1]
        text = self.run_job("out", 60, tables)
        self.assert_holds(text, "step 50: ", "it is run once more", "step 50 is no outlier in its second run; the first run gave loss ",
                          "suspect a fault of the machine")
        self.run_job("plain", 60, "")
        self.assertEqual(self.losses("out"), self.losses("plain"))

    def test_a_job_that_is_not_deterministic_is_refused(self):
        text = self.run_job("out", 3, replay(), "--debug.no_deterministic", code=2)
        self.assert_holds(text, "watcher 'replay' compares the bits of two runs of a step, but with debug.deterministic = false")
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    main()
