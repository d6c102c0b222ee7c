"""[profiling]: traces in Chrome's format that add up, `titan trace`, memory snapshots that PyTorch's own tools open
and whose peak is that of `titan estimate`. tests/benchmarks/trace_readers.py checks the traces with further readers."""

import gzip
import json
import pathlib
import pickle
import re
import resource
import subprocess
import sys

from harness import HANG, ROOT, TITAN, Case, environment, losses, main, thorough, titan

PROFILED = ["--profiling.enable_profiling", "--profiling.profile_freq", "3", "--profiling.profiler_warmup", "1"]
SNAPSHOTS = ["--profiling.enable_memory_snapshot", "--profiling.profile_freq", "2"]
FSDP = ["--parallelism.data_parallel_shard_degree", "2"]
PIPELINE = ["--parallelism.pipeline_parallel_degree", "2", "--parallelism.pipeline_parallel_schedule", "1F1B",
            "--training.local_batch_size", "4"]
# tensors large enough that gaps between operations are comparatively short
LARGE = ["--training.seq_len", "512", "--training.local_batch_size", "4"]


def read(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def spans(trace, **wanted):
    """Complete events in order of time; of two that begin at once, the longer one first."""
    found = [e for e in trace["traceEvents"] if e["ph"] == "X" and all(e.get(k) == v for k, v in wanted.items())]
    return sorted(found, key=lambda e: (e["ts"], -e["dur"]))


def inside(outer, inner):
    return outer["ts"] <= inner["ts"] + 0.003 and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.003


def covered(step, events):
    """Microseconds of `step` covered by the outermost of `events`."""
    total, end = 0, step["ts"]
    for event in events:
        if event is not step and inside(step, event) and event["ts"] >= end - 0.002:
            total += event["dur"]
            end = event["ts"] + event["dur"]
    return total


class ProfilingTest(Case):
    def launch(self, *arguments, ranks=2, code=0):
        run = subprocess.run([TITAN, "launch", "--nproc", str(ranks), "--", "train", "--job.config_file",
                              "train_configs/debug_model.toml", "--training.seq_len", "64", "--training.steps", "3",
                              "--job.dump_folder", str(self.out), *arguments], cwd=ROOT, env=environment(), text=True,
                             errors="replace", stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG, check=False)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def trace(self, step=3, rank=0, suffix=".json.gz"):
        return read(self.out / "profile_traces" / f"iteration_{step}" / f"rank{rank}_trace{suffix}")

    def assert_is_a_trace(self, trace):
        """Checks the rules of Chrome's format that viewers depend on."""
        for event in trace["traceEvents"]:
            self.assertIn(event["ph"], "XMistfbe", event)
            self.assertTrue({"pid", "tid", "ts"} <= event.keys(), event)
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0, event)
        by_thread = {}
        for event in spans(trace):
            by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
        for events in by_thread.values():  # nested or disjoint
            stack = []
            for event in events:
                while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"] + 0.003:
                    stack.pop()
                if stack:
                    self.assertTrue(inside(stack[-1], event), (stack[-1], event))
                stack.append(event)

    def test_a_recorded_step_names_what_it_does_and_adds_up(self):
        self.train(*PROFILED, *LARGE, "--training.steps", "6", "--profiling.profiler_active", "2")
        self.assertEqual(sorted(p.name for p in (self.out / "profile_traces").iterdir()), ["iteration_3", "iteration_6"])
        shares = {"cpu_op": [], "cpu_op, user_annotation": []}
        for step in (3, 6):
            trace = self.trace(step)
            self.assert_is_a_trace(trace)
            steps = [e for e in spans(trace, cat="user_annotation") if e["name"].startswith("ProfilerStep")]
            self.assertEqual([e["name"] for e in steps], [f"ProfilerStep#{step - 2}", f"ProfilerStep#{step - 1}"])
            own = [e for e in spans(trace) if e["tid"] == steps[0]["tid"]]
            names = {e["name"] for e in spans(trace)}
            self.assertTrue({"layers.0", "layers.0.attention", "layers.1.feed_forward", "output", "data loading", "optimizer step",
                             "forward of microbatch 0", "backward of microbatch 0", "backward of layers.1",
                             "aten::mm"} <= names, sorted(names))
            for recorded in steps:
                within = [e for e in own if inside(recorded, e)]
                for cats, found in shares.items():
                    found.append(covered(recorded, [e for e in within if e["cat"] in cats]) / recorded["dur"])
                    self.assertLessEqual(found[-1], 1.0001, cats)
            shapes = [e["args"]["Input Dims"] for e in own if e["name"] == "aten::mm"]
            self.assertTrue(shapes and all(len(dims[0]) == len(dims[1]) == 2 for dims in shapes), shapes)
            counts = [sum(inside(recorded, e) for e in own) for recorded in steps]
            self.assertEqual(counts[0], counts[1], "a later step has other events: something is recorded twice")
        for cats, found in shares.items():  # other load of the machine may spoil one step, but not all
            print(f"{cats}: {', '.join(f'{100 * share:.2f} %' for share in found)} of the steps", flush=True)
            self.assertGreater(max(found), 0.98, cats)

    def test_changes_no_loss(self):
        self.train(out=self.folder / "plain")
        self.out = self.folder / 'a "quoted" name'  # Kineto would write the quotes unescaped
        self.train(*PROFILED, "--profiling.enable_memory_snapshot")
        self.assertEqual(losses(self.out), losses(self.folder / "plain"))
        self.assert_is_a_trace(self.trace())

    def test_sharded_ranks_have_collectives_with_arrows(self):
        self.launch(*PROFILED, *FSDP, "--profiling.no_compress_traces")
        for rank in range(2):
            trace = self.trace(rank=rank, suffix=".json")
            self.assert_is_a_trace(trace)
            self.assertEqual(trace["distributedInfo"]["rank"], rank)
            self.assertEqual(trace["distributedInfo"]["world_size"], 2)
            text = (self.out / "profile_traces/iteration_3" / f"rank{rank}_trace.json").read_text()
            self.assertEqual(re.search(r'"rank":\s+(\d+)', text)[1], str(rank), "what HolisticTraceAnalysis looks for")
            comms = spans(trace, name="record_param_comms")
            starts = [e for e in comms if e["args"]["Collective name"] == "all_gather"]
            waits = [e for e in comms if e["args"]["Collective name"] == "wait for all_gather"]
            self.assertTrue(starts and waits)
            self.assertEqual(starts[0]["args"]["Process Group Ranks"], "[0, 1]")
            self.assertGreater(starts[0]["args"]["In msg nelems"], 0)
            arrows = {end: [e for e in trace["traceEvents"] if e["ph"] == end and e["cat"] == "wait"] for end in "sf"}
            self.assertEqual(sorted(e["id"] for e in arrows["s"]), sorted(e["id"] for e in arrows["f"]))
            self.assertGreaterEqual(len(arrows["f"]), len(waits))
        said = titan("trace", self.out / "profile_traces").stdout
        self.assert_holds(said, "of 2 ranks", "iteration_3.json.gz")
        merged = read(self.out / "profile_traces/iteration_3.json.gz")
        self.assert_is_a_trace({"traceEvents": [e for e in merged["traceEvents"] if e["ph"] != "M"]})
        self.assertEqual({e["pid"] for e in merged["traceEvents"]}, {0, 1})
        self.assert_arrows_lead_between_ranks(merged, r"(all_gather|reduce_scatter|all_reduce) \(\w+\) \d+")

    def assert_arrows_lead_between_ranks(self, merged, pattern):
        ends = {}
        for event in merged["traceEvents"]:
            if event["ph"] in "stf" and event["cat"] == "collective":
                ends.setdefault(event["id"], []).append(event)
        self.assertTrue(ends)
        named = {(e["pid"], e["ts"]): e["name"] for e in spans(merged)}
        kinds = set()
        for arrow in ends.values():
            self.assertEqual({e["pid"] for e in arrow}, {0, 1})
            self.assertEqual([e["ph"] for e in arrow], ["s", "f"])
            names = [named.get((e["pid"], e["ts"]), "") for e in arrow]
            kinds.update(name.split(" ")[0] for name in names if re.fullmatch(pattern, name))
            numbers = {name.rsplit(" ", 1)[1] for name in names if name}
            self.assertEqual(len(numbers), 1, names)
        self.assertTrue(kinds)
        return kinds

    def test_pipeline_ranks_have_actions_and_messages(self):
        self.launch(*PROFILED, *PIPELINE)
        names = [{e["name"] for e in spans(self.trace(rank=rank), cat="user_annotation")} for rank in range(2)]
        for rank in range(2):
            self.assertIn(f"forward of stage {rank}, microbatch 0 ({rank}F0)", names[rank])
            self.assertTrue(any(name.startswith(f"backward of stage {rank}") for name in names[rank]), names[rank])
        titan("trace", self.out / "profile_traces/iteration_3", "--output", self.folder / "all.json")
        kinds = self.assert_arrows_lead_between_ranks(read(self.folder / "all.json"), r"(send to|receive from) \d \(\w+\) \d+")
        self.assertEqual(kinds, {"send", "receive"})

    def test_a_resumed_session_begins_with_phase_zero_and_leaving_the_loop_saves(self):
        saved = ["--checkpoint.enable", "--checkpoint.interval", "2", "--checkpoint.no_last_save_model_only"]
        self.train(*saved, "--training.steps", "2")
        self.train(*saved, *PROFILED, "--training.steps", "8", "--profiling.profiler_active", "2", "--profiling.profiler_warmup",
                   "1", "--lr_scheduler.warmup_steps", "0")
        # step 3 has phase 0, steps 5 and 6 are active, and step 8 is the first of the next two
        self.assertEqual(sorted(p.name for p in (self.out / "profile_traces").iterdir()), ["iteration_6", "iteration_8"])
        for step, recorded in ((6, ["ProfilerStep#4", "ProfilerStep#5"]), (8, ["ProfilerStep#7"])):
            names = [e["name"] for e in spans(self.trace(step), cat="user_annotation") if e["name"].startswith("ProfilerStep")]
            self.assertEqual(names, recorded)

    def test_files_that_cannot_be_written_are_said_once(self):
        self.out.mkdir()
        for name in ("profile_traces", "memory_snapshot"):
            (self.out / name).write_text("in the way")
        run = self.train(*PROFILED, "--profiling.enable_memory_snapshot", "--training.steps", "6")
        self.assertEqual(run.stderr.count("could not be written"), 2, run.stderr)
        self.assert_holds(run.stderr, "the trace '", "the memory snapshot in '", "training continues")
        self.assertEqual(len(losses(self.out)), 6)

    def snapshot(self, iteration="iteration_2", rank=0):
        path = self.out / "memory_snapshot" / iteration / f"rank{rank}_memory_snapshot.pickle"
        with open(path, "rb") as file:
            return path, pickle.load(file)

    def peak(self, snapshot, begin_us=0):
        """Peak bytes from `begin_us` on, computed backwards from the current state."""
        live = sum(block["size"] for segment in snapshot["segments"] for block in segment["blocks"])
        highest = live
        for event in reversed(snapshot["device_traces"][0]):
            if event["time_us"] < begin_us:
                break
            live += {"alloc": -event["size"], "free_completed": event["size"]}.get(event["action"], 0)
            highest = max(highest, live)
        return highest

    @thorough
    def test_snapshots_open_in_pytorchs_tools(self):
        run = self.train(*SNAPSHOTS, "--training.steps", "2")
        path, snapshot = self.snapshot()
        page = self.folder / "plot.html"
        for command in (["stats", path], ["trace", path], ["trace_plot", path, "-o", page]):
            done = subprocess.run([sys.executable, "-m", "torch.cuda._memory_viz", *map(str, command)], text=True,
                                  capture_output=True, timeout=HANG, check=False, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("<html", page.read_text()[:2000].lower())
        events = snapshot["device_traces"][0]
        self.assertTrue(all(a["time_us"] <= b["time_us"] for a, b in zip(events, events[1:])))
        frames = {(f["filename"], f["name"]) for e in events for f in e["frames"]}
        self.assertTrue({("forward", "layers.0.attention"), ("backward", "layers.0.feed_forward"), ("forward", "layers.1"),
                         ("step", "forward of microbatch 0"), ("step", "backward of microbatch 0"), ("step", "optimizer step"),
                         ("use", "activations"), ("use", "gradients"), ("use", "optimizer states"),
                         ("use", "temporary")} <= frames, sorted(frames))
        self.assert_holds(run.stderr, "memory of rank 0", "at the peak", "layers.1", "outside of layers")

    def assert_table_adds_up(self, text):
        bytes_at_peak = int(text.split(" bytes")[0].replace(",", ""))
        rows = [re.split(r"  +", line.strip()) for line in text.splitlines()[1:] if line.strip()]
        head, *layers, total = rows
        self.assertEqual((head[0], head[-1], total[0]), ("MiB", "all", "all"))
        for row in [*layers, total]:
            self.assertAlmostEqual(sum(map(float, row[1:-1])), float(row[-1]), delta=0.005 * len(row))
        for column in range(1, len(head)):
            self.assertAlmostEqual(sum(float(row[column]) for row in layers), float(total[column]), delta=0.005 * len(rows))
        self.assertAlmostEqual(float(total[-1]), bytes_at_peak / 2**20, delta=0.005)
        return bytes_at_peak

    @thorough
    def test_the_highest_moment_is_what_the_estimate_says(self):
        recipe = [*LARGE, "--training.steps", "2", "--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0",
                  "--training.mixed_precision_param", "float32", "--metrics.loggers", "jsonl"]
        for name, layout, ranks in (("one rank", [], 1), ("fsdp", FSDP, 2), ("pipeline", PIPELINE, 2)):
            with self.subTest(name):
                self.out = self.folder / name.replace(" ", "_")
                if ranks == 1:
                    self.train(*SNAPSHOTS, *recipe, *layout)
                else:
                    self.launch(*SNAPSHOTS, *recipe, *layout)
                estimate = json.loads(titan("estimate", "--ranks", ranks, "--json", "--job.config_file", "train_configs/debug_model.toml",
                                            "--device.name", "cpu", *recipe, *layout).stdout)["ranks"]
                for rank in range(ranks):
                    path, snapshot = self.snapshot(rank=rank)
                    first = next(e["time_us"] for e in snapshot["device_traces"][0]
                                 if any(f["name"] == "optimizer step" for f in e["frames"]))
                    table = self.assert_table_adds_up((path.parent / f"rank{rank}_memory_peak.txt").read_text())
                    predicted = estimate[rank if len(estimate) == ranks else 0]["peak_bytes"]
                    counted = self.peak(snapshot, first)
                    print(f"{name}, rank {rank}: estimate {predicted:,}, snapshot {counted:,}, table {table:,}", flush=True)
                    self.assertLess(abs(predicted / counted - 1), 0.01)
                    self.assertLess(abs(table / counted - 1), 0.001)

    @thorough
    def test_out_of_memory_leaves_a_last_snapshot(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_DATA, (3 * 2**30, resource.RLIM_INFINITY))
        recipe = ["--job.config_file", "train_configs/debug_model.toml", "--training.seq_len", "64", "--training.steps", "3"]
        run = subprocess.run([TITAN, "train", *recipe, "--job.dump_folder", str(self.out), *SNAPSHOTS,
                              "--training.local_batch_size", "8000"], cwd=ROOT, env=environment(), text=True, errors="replace",
                             stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG, check=False, preexec_fn=limit)
        self.assertEqual(run.returncode, 1, run.stderr)
        _, snapshot = self.snapshot("iteration_0_exit")
        self.assertIn("oom", [event["action"] for event in snapshot["device_traces"][0]])

    def test_titan_trace_says_what_is_missing(self):
        for folder in (self.folder, self.folder / "nothing"):
            run = titan("trace", folder)
            self.assertEqual(run.returncode, 1)
            self.assertIn(str(folder), run.stderr)


if __name__ == "__main__":
    assert pathlib.Path(TITAN).exists()
    main()
