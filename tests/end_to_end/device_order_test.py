"""Training steps on the recording device: the losses are bitwise those of the CPU, the host waits for the device only in observed
steps, nothing reads data that another stream may not have written yet, and no memory is freed while a stream may use it.

The device is a backend of LibTorch in tests/recording_device. It computes at once on the CPU, so values do not show the
order; vector clocks of streams and events do. tests/plugins/devices/stream_order_test.cpp tests the order checker."""

import json
import os
import pathlib
import re

from harness import ROOT, Case, main, metrics, thorough, titan

BUILT = pathlib.Path(os.environ["TITAN_PROGRAM"]).parent.parent / "tests/recording_device"
STEPS, LOG_FREQ = 6, 4
BFLOAT16 = ["--training.mixed_precision_param", "bfloat16"]
UNSEEN = (2, 3, 5)  # not the first, a logged or the last step; a record lasts until the next step begins, including loading its data


class DeviceOrderTest(Case):
    def recipe(self):
        """The debug job without its schedule: the recording device's schedule marks the beginnings of
        steps."""
        text = (ROOT / "train_configs/debug_model.toml").read_text()
        text = re.sub(r"\[lr_scheduler\]\n(?:\w.*\n)*", '[lr_scheduler]\nname = "test/marked"\n', text)
        return self.write("recipe.toml", text)

    def run_on(self, device, *arguments, ranks=1, code=0, log_freq=LOG_FREQ):
        out, report = self.folder / device / "out", self.folder / device / "report"
        report.mkdir(parents=True, exist_ok=True)
        command = ["launch", "--nproc", ranks, "--log-dir", self.folder / device / "logs", "--"] if ranks > 1 else []
        name = ["--device.name", "test/recording", "--device.report", report] if device == "recording" else []
        run = titan(*command, "train", "--job.config_file", self.recipe(), "--plugins.paths", BUILT, "--job.dump_folder", out,
                    "--training.seq_len", 64, "--training.steps", STEPS, "--metrics.log_freq", log_freq,
                    "--metrics.no_enable_tensorboard", *name, *arguments)
        self.assertEqual(run.returncode, code, run.stderr)
        numbers = [(line["step"], line["loss_metrics/global_avg_loss"], line.get("grad_norm")) for line in metrics(out)]
        records = [json.loads((report / f"rank{rank}.json").read_text()) for rank in range(ranks)] if name else []
        return run, numbers, records

    def steps_of(self, record):
        return {step["number"]: step for step in record["steps"]}

    def assert_in_order(self, *arguments, ranks=1, unseen=UNSEEN):
        """Returns the records of the ranks."""
        _, expected, _ = self.run_on("cpu", *arguments, ranks=ranks)
        _, found, records = self.run_on("recording", *arguments, ranks=ranks)
        self.assertEqual(found, expected)
        for record in records:
            self.assertEqual(record["mistakes"], [])
            steps = self.steps_of(record)
            for number in unseen:
                self.assertEqual(steps[number]["host_waits"], [], f"step {number}")
                self.assertGreater(steps[number]["launches"], 300)
            self.assertIn("item()", steps[LOG_FREQ]["host_waits"])  # logged steps wait, and the record shows it
        return records

    def test_no_step_that_nobody_looks_at_waits(self):
        [record] = self.assert_in_order()
        # needed for a captured graph: each launch has the same operation, shapes and numbers, except the learning rate
        steps = self.steps_of(record)
        traces = [[re.sub(r"(_fused_adamw_.*)", "_fused_adamw_", line) for line in steps[n]["trace"]] for n in (2, 3)]
        self.assertEqual(*traces)
        differing = [a for a, b in zip(steps[2]["trace"], steps[3]["trace"]) if a != b]
        self.assertEqual(len(differing), 1)
        self.assertIn("aten::_fused_adamw_", differing[0])

    def test_forward_and_backward_are_replayed_as_one_graph(self):
        self.replayed([*BFLOAT16, "--training.global_batch_size", "4"])

    @thorough
    def test_other_jobs_are_replayed_too(self):
        self.replayed([], ["--training.global_batch_size", "4"], ["--activation_checkpoint.mode", "full"])

    def replayed(self, *jobs):
        for more in jobs:
            with self.subTest(more):
                [record] = self.assert_in_order("--compile.enable", *more)
                steps = self.steps_of(record)
                self.assertEqual([steps[n]["replays"] for n in range(1, STEPS + 1)], [0, 0, 1, 1, 1, 1])
                # launched one by one outside of the graph: the batch, clipping, the update
                beside = steps[5]["trace"][:steps[5]["trace"].index("replay a graph")]
                self.assertEqual([line for line in beside if "linear" in line or "attention" in line], [])

    @thorough
    def test_what_is_not_replayed_is_said_and_runs_as_ever(self):
        for more, why in [(["--activation_checkpoint.mode", "offload"], "activations go to the host"),
                          (["--data.isolate_documents"], "documents differ in length"),
                          (["--optimizer.early_step_in_backward", "--training.max_norm", "0"], "weights change inside of the backward"),
                          (["--training.mixed_precision_param", "float16"], "the loss scale of float16 changes"),
                          ([*BFLOAT16, "--training.enable_cpu_offload"], "weights are kept in host memory")]:
            with self.subTest(why):
                run, _, [record] = self.run_on("recording", "--compile.enable", *more)
                self.assertIn("forward and backward are not replayed as a graph: " + why, run.stderr)
                self.assertEqual({step["replays"] for step in record["steps"]}, {0})
                self.assertEqual(record["mistakes"], [])
        run, _, [record] = self.run_on("recording", "--compile.enable", "--compile.no_graphs")
        self.assertNotIn("graph", run.stderr)
        self.assertEqual({step["replays"] for step in record["steps"]}, {0})

    def test_every_step_waits_where_every_step_is_logged(self):
        _, _, [record] = self.run_on("recording", log_freq=1)
        for number in UNSEEN:
            self.assertIn("item()", self.steps_of(record)[number]["host_waits"])

    @thorough
    def test_bfloat16_with_microbatches(self):
        self.assert_in_order(*BFLOAT16, "--training.global_batch_size", "4", "--optimizer.implementation", "foreach")

    def test_activations_that_wait_on_the_host(self):
        [record] = self.assert_in_order("--activation_checkpoint.mode", "offload", "--activation_checkpoint.min_bytes", "0")
        self.assertGreater(self.steps_of(record)[3]["waits"], 100)  # waits of one stream for another

    @thorough
    def test_offload_lowers_the_peak_to_one_block(self):
        """The peak follows the order in which the host submits work: no memory is held until the device has finished a copy."""
        peaks = {}
        for mode in ("none", "full", "offload"):
            self.run_on("recording", "--activation_checkpoint.mode", mode, "--training.seq_len", 512)
            peaks[mode] = metrics(self.folder / "recording/out")[-1]["memory/max_active(GiB)"]
        self.assertLess(peaks["offload"], 0.7 * peaks["none"])
        self.assertLess(peaks["offload"], 1.1 * peaks["full"])

    def test_two_ranks_of_fsdp(self):
        records = self.assert_in_order("--parallelism.data_parallel_shard_degree", "2", ranks=2)
        for record in records:
            trace = self.steps_of(record)[3]["trace"]
            for collective in ("all_gather", "reduce_scatter", "all_reduce"):
                self.assertTrue(any(re.match(rf"{collective} on stream 1\d\d$", line) for line in trace), collective)
            # shards are copied into a gather's buffer while the compute stream runs the layer
            for place in [i for i, line in enumerate(trace) if line.startswith("all_gather")]:
                before = next(line for line in reversed(trace[:place]) if not line.startswith("wait"))
                self.assertRegex(before, r"^copy on the device .* on stream [1-8]$")

    @thorough
    def test_two_ranks_of_other_layouts(self):
        for axis in ("data_parallel_replicate", "tensor_parallel", "context_parallel"):
            with self.subTest(axis):
                self.assert_in_order(f"--parallelism.{axis}_degree", "2", ranks=2)

    @thorough
    def test_two_ranks_of_a_pipeline(self):
        for schedule in ("1F1B", "Interleaved1F1B"):
            with self.subTest(schedule):
                self.assert_in_order("--parallelism.pipeline_parallel_degree", "2", "--parallelism.pipeline_parallel_schedule", schedule,
                                     "--training.local_batch_size", "4", "--training.global_batch_size", "8", ranks=2)

    def test_a_bad_step_that_nobody_looked_at_ends_the_run(self):
        run, numbers, _ = self.run_on("recording", "--optimizer.lr", "1e30", "--checkpoint.enable", "--checkpoint.interval", "4",
                                      code=1)
        self.assertEqual([step for step, *_ in numbers], [1])
        self.assertRegex(run.stderr, r"step 2 had loss \S+ and gradient norm -?(nan|inf); it was not logged")
        self.assert_holds(run.stderr, "in training step 4", "metrics.log_freq = 1")
        self.assertEqual(list((self.folder / "recording/out").rglob("*.safetensors")), [])

    @thorough
    def test_a_bad_step_is_found_before_a_local_checkpoint(self):
        local = self.folder / "local"
        run, _, _ = self.run_on("recording", "--optimizer.lr", "1e30", "--checkpoint.enable", "--checkpoint.interval", "100",
                                "--checkpoint.local_folder", local, "--checkpoint.local_interval", "3", code=1)
        self.assert_holds(run.stderr, "step 2 had loss", "in training step 3")
        self.assertEqual(list(local.rglob("*.safetensors")), [])


if __name__ == "__main__":
    main()
