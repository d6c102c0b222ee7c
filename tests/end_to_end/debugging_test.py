"""[debug] and `titan compare` for a user: they name the first bad value, and the layer in which two runs diverge."""

import csv
import json
import xml.etree.ElementTree as xml

from harness import DEBUG_CONFIG, HANG, Case, losses, main, thorough, titan

RECIPE = ["--job.config_file", DEBUG_CONFIG, "--training.seq_len", "32", "--training.steps", "2", "--training.global_batch_size", "4",
          "--training.local_batch_size", "2", "--parallelism.pipeline_parallel_microbatch_size", "1", "--metrics.log_freq", "1",
          "--metrics.no_enable_tensorboard", "--debug.seed", "1", "--lr_scheduler.warmup_steps", "1"]
TRACED = ["--debug.trace_tensors", "*", "--debug.fingerprints"]
# all but one of the layers' 42 linear layers stay unchanged
ONE_LAYER_IN_FLOAT8 = ["--model.converters", "quantize.linear.float8", "--quantize.linear.float8.emulate",
                       "--quantize.linear.float8.filter_fqns", "attention,w1,w3,layers.0,layers.1,layers.3,layers.4,layers.5"]


class DebuggingCase(Case):
    def run_with(self, name, *flags, code=0, ranks=1):
        """Trains into a separate folder; returns the output."""
        out = self.folder / name
        if ranks == 1:
            run = self.train(*flags, config=RECIPE, out=out, code=code)
        else:
            run = titan("launch", "--nproc", ranks, "--", "train", *RECIPE, "--job.dump_folder", out, *flags, timeout=HANG)
            self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def compare(self, a, b, *flags, code):
        run = titan("compare", self.folder / a, self.folder / b, *flags)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout


class CompareTest(DebuggingCase):
    def test_two_equal_runs_are_the_same_and_looking_changes_nothing(self):
        self.run_with("plain")
        self.run_with("a", *TRACED)
        self.run_with("b", *TRACED, "--debug.find_nan", "--debug.detect_anomaly", "--activation_checkpoint.mode", "full")
        self.assertEqual(losses(self.folder / "a"), losses(self.folder / "plain"))
        text = self.compare("a", "b", code=0)
        self.assert_holds(text, "activation_checkpoint.mode", "equal at all 2 common steps", "tensors: equal in all 2 traced steps",
                          "no difference in what both runs recorded")

    def test_the_layer_that_a_converter_changes_is_named(self):
        self.run_with("a", *TRACED)
        self.run_with("b", *TRACED, *ONE_LAYER_IN_FLOAT8)
        text = self.compare("a", "b", code=1)
        self.assert_holds(text, "in step 1, in the forward of microbatch 0, at the output of layers.2.feed_forward.w2",
                          "the last equal one before it is the input of layers.2.feed_forward.w2",
                          "initial weights: all 57 common weights are equal", "the same tokens", "model.converters")
        found = json.loads(self.compare("a", "b", "--json", code=1))
        self.assertEqual(found["tensors"]["first"]["name"], "layers.2.feed_forward.w2")
        self.assertEqual(found["numbers"]["parts_at"], 1)
        self.assertFalse(found["same"])
        self.compare("a", "b", "--tolerance", "0.5", code=0)

    def test_another_rate_for_one_weight_shows_in_the_next_step(self):
        self.run_with("a", *TRACED)
        group = '[optimizer.groups.one]\npatterns = ["layers.3.attention.wo.weight"]\nlr = 0.5\n'
        changed = self.write("changed.toml", (self.folder / "a" / "config.toml").read_text() + "\n" + group)
        self.train("--debug.seed", "1", config=["--job.config_file", changed], out=self.folder / "b")
        text = self.compare("a", "b", code=1)
        self.assert_holds(text, "in step 2, before the forward, at the weight layers.3.attention.wo.weight",
                          "initial weights: all 57 common weights are equal")

    @thorough
    def test_runs_of_other_layouts_are_compared_by_what_they_add_up_to(self):
        self.run_with("one", *TRACED)
        for name, flags in (("fsdp", []), ("pp", ["--parallelism.pipeline_parallel_degree", "2"]),
                            ("zbv", ["--parallelism.pipeline_parallel_degree", "2", "--parallelism.pipeline_parallel_schedule", "ZBVZeroBubble"]),
                            ("tp", ["--parallelism.tensor_parallel_degree", "2"])):
            self.run_with(name, *TRACED, *flags, ranks=2)
            text = self.compare("one", name, "--tolerance", "1e-4", code=0)
            self.assert_holds(text, "tensors: equal in all 2 traced steps", "have no counterpart")
        found = json.loads(self.compare("one", "fsdp", "--tolerance", "1e-4", "--json", code=0))
        self.assertGreater(found["tensors"]["compared"], 300)

    def test_folders_that_cannot_be_compared_are_named(self):
        self.run_with("a")
        (self.folder / "empty").mkdir()
        for other, text in (("nowhere", "there is no folder"), ("empty", "holds no config.toml")):
            run = titan("compare", self.folder / "a", self.folder / other)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, text, other)
        lines = (self.folder / "a" / "metrics.jsonl").read_text().splitlines()
        (self.folder / "a" / "metrics.jsonl").write_text(lines[0] + "\n{\"step\": 2, oops}\n")
        run = titan("compare", self.folder / "a", self.folder / "a")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assert_holds(run.stderr, "metrics.jsonl:2")


class BadValuesTest(DebuggingCase):
    # the first update makes the weights so large that their squares overflow in the second step
    LARGE = ["--optimizer.lr", "1e30"]

    def test_find_nan_names_the_tensor_and_ends_the_run(self):
        said = self.run_with("found", *self.LARGE, "--debug.find_nan", code=1)
        self.assert_holds(said, "is run once more to find the cause", "the gradient of the output of layers.5",
                          "values are bad (nan", "in the backward of microbatch 0",
                          "the last good one before it is the gradient of the weight norm.weight (rank 0, step 2)",
                          "in training step 2")
        said = self.run_with("plain", *self.LARGE, code=1)
        self.assert_holds(said, "the gradient norm is", "debug.find_nan = true names the first layer that goes bad")

    def test_find_nan_names_what_overflows_in_float16(self):
        said = self.run_with("half", "--optimizer.lr", "1e6", "--training.mixed_precision_param", "float16", "--debug.find_nan", code=1)
        self.assert_holds(said, "the output of tok_embeddings is bad", "in the forward of microbatch 0", "nan 0, inf")

    def test_all_ranks_name_the_same(self):
        for flags in ([], ["--parallelism.tensor_parallel_degree", "2"], ["--parallelism.pipeline_parallel_degree", "2"],
                      ["--parallelism.context_parallel_degree", "2"]):
            said = self.run_with("ranks", *self.LARGE, "--debug.find_nan", *flags, code=1, ranks=2)
            found = {line.split("is bad")[1].split(";")[0] for line in said.splitlines() if "is bad" in line}
            self.assertEqual(len(found), 1, said)
            self.assert_holds(said, "the gradient of the output of layers.5")

    def test_detect_anomaly_names_the_operation_and_its_layer(self):
        for flags, ranks in (([], 1), (["--parallelism.pipeline_parallel_degree", "2"], 2)):
            said = self.run_with("anomaly", *self.LARGE, "--debug.detect_anomaly", *flags, code=1, ranks=ranks)
            self.assert_holds(said, "returned nan values in its 0th output", "was recorded in the forward of 'output.norm'",
                              "in training step 2")

    def test_what_cannot_be_is_refused_at_once(self):
        for flags, text in (
                (["--debug.find_nan", "--optimizer.early_step_in_backward", "--training.max_norm", "0"], "no step can be run again"),
                (["--debug.trace_tensors", "layer.*"], "debug.trace_tensors: 'layer.*' fits no layer"),
                (["--profiling.enable_profiling", "--profiling.profile_freq", "3"],
                 "profiling.profile_freq = 3 is shorter than profiler_warmup + profiler_active = 3 + 1"),
                (["--debug.trace_tensors_from", "5", "--debug.trace_tensors_until", "4"], "is before debug.trace_tensors_from = 5"),
                (["--debug.trace_tensors", "*", "--debug.trace_tensors_from", "5", "--debug.trace_tensors_until", "4"],
                 "is before debug.trace_tensors_from = 5")):
            run = titan("train", *RECIPE, "--job.dump_folder", self.out, *flags)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, text)
            self.assert_nothing_was_written()


class ParetoTest(DebuggingCase):
    PARETO = "--activation_checkpoint.visualize_memory_budget_pareto"

    def test_memory_against_recomputation_is_drawn_and_written_as_numbers(self):
        self.run_with("budget", "--activation_checkpoint.mode", "memory_budget", "--activation_checkpoint.memory_budget", "0.3", self.PARETO)
        folder = self.folder / "budget" / "memory_budget_pareto"
        rows = csv.DictReader((folder / "rank0.csv").read_text().splitlines())
        points = [{name: float(value) for name, value in row.items()} for row in rows]
        self.assertEqual([point["budget"] for point in points], [round(i / 20, 2) for i in range(21)])
        most = points[-1]["kept_bytes"]
        for before, point in zip(points, points[1:]):
            self.assertLessEqual(point["kept_bytes"], point["budget"] * most)
            self.assertLessEqual(point["recomputed_flops"], before["recomputed_flops"])
        self.assertEqual((points[0]["kept_bytes"], points[0]["recomputed_share"], points[-1]["recomputed_share"]), (0, 1, 0))
        drawing = xml.parse(folder / "rank0.svg").getroot()
        dots = drawing.findall("{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(dots), 21)

    def test_other_modes_have_nothing_to_draw(self):
        said = self.run_with("full", "--activation_checkpoint.mode", "full", self.PARETO)
        self.assert_holds(said, "visualize_memory_budget_pareto = true has no effect: this job does not use activation_checkpoint 'memory_budget'")
        self.assertFalse((self.folder / "full" / "memory_budget_pareto").exists())


if __name__ == "__main__":
    main()
