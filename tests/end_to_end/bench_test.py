"""titan bench: its figures agree with the files of one run, and with the output of two compared programs."""

import json
import statistics
import sys

import harness
from harness import Case, titan

JOB = ["--job.config_file", harness.DEBUG_CONFIG, "--training.seq_len", "64"]

# A program that does not train: it reports steps, and figures that differ between calls.
OTHER = """
import json, os, pathlib, sys
calls = pathlib.Path(sys.argv[1])
number = int(calls.read_text()) + 1 if calls.exists() else 1
calls.write_text(str(number))
for step in range(1, int(os.environ["TITAN_BENCH_WARMUP"]) + int(os.environ["TITAN_BENCH_STEPS"]) + 1):
    print(json.dumps({"step": step}), flush=True)
print(json.dumps({"tokens_per_second": 1.0 + number, "tokens_per_step": 10, "step_seconds": [10 / (1.0 + number)] * 2,
                  "peak_bytes": 1000}))
"""


class BenchTest(Case):

    def bench(self, *arguments, code=0):
        run = titan("bench", *JOB, *arguments)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run

    def test_figures_are_those_of_the_run(self):
        kept = self.folder / "kept"
        run = self.bench("--nproc", "2", "--parallelism.data_parallel_shard_degree", "2", "--warmup", "2", "--steps", "7",
                         "--keep", kept, "--json", "-")
        found = json.loads(run.stdout)
        self.assertEqual((found["schema"], found["steps"]), (1, {"warmup": 2, "measured": 7, "interval": 1}))
        figures = found["figures"]
        lines = [line for line in harness.metrics(kept / "1/run") if line["step"] > 2]
        times = [line["time_metrics/end_to_end(s)"] for line in lines]
        self.assertEqual(figures["step_seconds"]["all"], times)
        self.assertEqual(figures["step_seconds"]["median"], statistics.median(times))
        # with 7 values the interval is from the smallest to the largest
        self.assertEqual([figures["step_seconds"]["low"], figures["step_seconds"]["high"]], [min(times), max(times)])
        self.assertEqual((figures["ranks"], figures["tokens_per_step"]), (2, 2 * 2 * 64))
        self.assertAlmostEqual(figures["tokens_per_second"], 256 / statistics.median(times))
        self.assertIsNone(figures["mfu"]["full_attention"])  # the peak of a CPU is unknown
        flops = figures["flops_per_token"]
        self.assertLess(flops["causal_half"], flops["full_attention"])
        self.assertAlmostEqual(figures["share_of_gemm"]["full_attention"],
                               flops["full_attention"] * figures["tokens_per_second"] / figures["gemm_flops"])
        self.assertLess(0, figures["to_first_step"])
        self.assertLess(figures["to_first_step"], figures["to_first_step_end"])
        # the bytes that a rank sent by operation add up to the logged sum, except for the logged
        # losses
        traffic = figures["traffic"]
        sent = sum(row["bytes"] for row in traffic["by_operation"])
        logged = next(line for line in lines if line["step"] == traffic["step"])["comm_metrics/sent_per_step(MiB)"] * 2**20
        self.assertLess(abs(sent - logged), 200)
        self.assertEqual({(row["group"], row["operation"]) for row in traffic["by_operation"] if row["bytes"] > 1000},
                         {("fsdp", "all_gather"), ("fsdp", "reduce_scatter")})
        if figures["cpu_per_step"]:
            self.assertGreater(figures["cpu_per_step"]["cpu_seconds"], 0)
        else:  # on a busy machine
            self.assertEqual(figures["counters_refused"], "the measured steps were too short to read counters between them")
        self.assertIn("fsdp", run.stderr)  # for people, in addition to the JSON

    def test_two_sides_take_turns(self):
        other = self.write("other.py", OTHER)
        result = self.folder / "pairs.json"
        run = self.bench("--warmup", "1", "--steps", "2", "--no-gemm", "--json", result, "--against",
                         f"{sys.executable} {other} {self.folder / 'calls'}")
        pairs = json.loads(result.read_text())["pairs"]
        self.assertEqual([side["tokens_per_second"] for side in pairs["b"]], [1.0 + call for call in range(1, 8)])
        ratio = pairs["ratios"]["tokens_per_second"]
        expected = [a["tokens_per_second"] / b["tokens_per_second"] for a, b in zip(pairs["a"], pairs["b"])]
        self.assertEqual(ratio["pairs"], expected)
        self.assertEqual([ratio["low"], ratio["median"], ratio["high"]],
                         [min(expected), statistics.median(expected), max(expected)])
        self.assertEqual(ratio["verdict"], "above 1")
        self.assertNotIn("gemm_flops", pairs["ratios"])
        self.assertEqual([line.split(":")[0] for line in run.stdout.splitlines() if line.startswith("pair ")],
                         [f"pair {number} of 7" for number in range(1, 8)])

    def test_mistakes_are_told_together_before_anything_starts(self):
        run = titan("bench", *JOB, "--warmup", "0", "--steps", "many", "--pairs", "3", "--stesp", "4")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "--warmup must be between 1 and 1000000, got 0", "--steps must be an integer",
                          "--pairs must be between 7 and 1000000, got 3", "unknown option '--stesp'; did you mean '--steps'?")
        run = titan("bench", *JOB, "--training.steps", "4", "--json", self.folder / "no/where.json", "--against", "true", "--vs-flags",
                    "--x.y 1", "--warmup", "3", "--interval", "2")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "must be multiples of --interval (2)", "--training.steps is set by titan bench",
                          "there is no folder", "give one or the other", "nothing was started")

    def test_mistakes_of_both_jobs_are_told_together(self):
        run = self.bench("--optimizer.lr", "-1", "--vs-flags", "--optimizer.lr -2 --training.seq_len 0", code=2)
        self.assert_holds(run.stderr, "got -1", "got -2", "seq_len", "nothing was measured")
        self.assertNotIn("pair 1", run.stdout)

    def test_a_program_that_fails_is_quoted(self):
        run = self.bench("--against", "echo so it goes >&2; exit 3", "--warmup", "1", "--steps", "1", "--no-gemm", code=1)
        self.assert_holds(run.stderr, "ended with exit code 3", "so it goes")
        run = self.bench("--against", "echo nothing", "--warmup", "1", "--steps", "1", "--no-gemm", code=1)
        self.assert_holds(run.stderr, "no line of JSON with \"tokens_per_second\"")


if __name__ == "__main__":
    harness.main()
