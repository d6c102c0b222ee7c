"""Profiles a training step: every operation's share of the time, speed and ratio to the machine's peak.

  ninja -C build/release benchmarks
  .venv/bin/python tests/benchmarks/op_profile.py [--write docs/results/performance.md]    # about 6 minutes on two idle cores
  .venv/bin/python tests/benchmarks/op_profile.py --only "debug, fp32" --no-ops    # one table, for a look

Titan's profiler records some steps of each job; the one of median length becomes a table. An operation with a formula
(op_formulas.py) counts as a whole, with all operations that it calls; other operations are split into their calls; the rows add up to
the step. The peaks are measured in the same run, before and after each job: ATen's matrix products, and copies of and sums into a large
tensor.
"""

import argparse
import collections
import dataclasses
import gzip
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

import op_formulas

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
OPS_BENCHMARK = ROOT / "build/release/bin/ops_benchmark"

RECIPE = ["--job.config_file", "train_configs/debug_model.toml", "--device.name", "cpu", "--lr_scheduler.warmup_steps", 1,
          "--metrics.log_freq", 1, "--metrics.loggers", "jsonl", "--metrics.no_enable_tensorboard"]
LLAMA_100M = ["--model.dim", 768, "--model.n_layers", 12, "--model.n_heads", 12, "--model.vocab_size", 32000,
              "--training.seq_len", 1024, "--training.local_batch_size", 1]
DTYPES = {"fp32": ["--training.mixed_precision_param", "float32"], "bf16": ["--training.mixed_precision_param", "bfloat16"]}
JOBS = {
    "debug, fp32": (DTYPES["fp32"], "debug model: dim 256, 6 layers, 16 heads of 16, vocabulary 2,048; 2 x 2,048 tokens; fp32"),
    "debug, bf16": (DTYPES["bf16"], "debug model, 2 x 2,048 tokens; bf16"),
    "100M, fp32": (LLAMA_100M + DTYPES["fp32"],
                   "100M Llama: dim 768, 12 layers, 12 heads of 64, vocabulary 32,000; 1 x 1,024 tokens; fp32"),
    "100M, bf16": (LLAMA_100M + DTYPES["bf16"], "100M Llama, 1 x 1,024 tokens; bf16"),
}
FRAME = re.compile(r"autograd::|torch::autograd::|[^:]*$")  # names that only enclose operations: the engine, its nodes, annotations
SMALL = 0.001  # share of the step below which rows are combined


def titan(*arguments, threads, timeout=1800):
    done = subprocess.run([TITAN, *map(str, arguments)], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": str(threads)}, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"titan {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


PEAKS = """
import sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
def best(f, n):
    f()
    times = []
    for _ in range(n):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)
for dtype in (torch.float32, torch.bfloat16):
    def flops(size):
        a, b = (torch.randn(size, size).to(dtype) for _ in "ab")
        return 2 * size**3 / best(lambda: a @ b, 7)
    small = flops(512)
    print(flops(2048) if small > 2e10 else small)
x, y = torch.ones(2**26), torch.zeros(2**26)
z, w = torch.randn(2**14), torch.zeros(2**14)
print(max(2 * 4 * 2**26 / best(lambda: y.copy_(x), 7), 3 * 4 * 2**26 / best(lambda: y.add_(x), 7)))
print(2**14 * 100 / best(lambda: [torch.exp(z, out=w) for _ in range(100)], 7))
"""


@dataclasses.dataclass
class Peaks:
    """FLOP/s of a product of 2048 x 2048 matrices (512 x 512 on a CPU that is slow at it) by dtype; bytes/s, read and written, of a copy
    of 256 MiB or of a sum into such a tensor, whichever is faster; exponentials/s of ATen in fp32, of 16,384 numbers."""
    fp32: float
    bf16: float
    memory: float
    exp: float

    def best_of(self, other):
        return Peaks(*(max(pair) for pair in zip(dataclasses.astuple(self), dataclasses.astuple(other))))


def measure_peaks(threads):
    run = subprocess.run([sys.executable, "-c", PEAKS, str(threads)], capture_output=True, text=True, check=True)
    return Peaks(*map(float, run.stdout.split()))


@dataclasses.dataclass
class Row:
    """One operation with one set of shapes, in one phase of the step. Times in microseconds."""
    phase: str
    name: str
    shapes: str
    calls: int = 0
    time: float = 0.0
    flops: float = 0.0
    flops_model: float = 0.0
    bytes: float = 0.0
    exponentials: float = 0.0
    has_formula: bool = True
    dtype: str = ""


def phase_of(frames):
    """The phase of an operation, by the names of its enclosing events, outermost first."""
    for name in frames:
        for word in ("data loading", "forward of", "backward of", "gradient clipping", "optimizer step"):
            if name.startswith(word):
                return word.removesuffix(" of").replace("gradient clipping", "clipping").replace(" step", "")
    return "between"


def shapes_of(arguments):
    dims = [one for one in arguments.get("Input Dims", []) if one]
    if dims and isinstance(dims[0][0], list):
        return f"list of {len(dims[0])}"
    return ", ".join("x".join(map(str, one)) for one in dims[:2])


def rows_of_step(events, num_parameters):
    """The rows of one recorded step, which add up to its length. `events`: all of one thread, including the step itself."""
    rows, stack = {}, []  # stack entries: [event, end, row of the event or None, time of the enclosed events]

    def add(phase, name, shapes, time, calls=0, **more):
        row = rows.setdefault((phase, name, shapes), Row(phase, name, shapes))
        row.time += time
        row.calls += calls
        for key, value in more.items():
            setattr(row, key, value if isinstance(value, (str, bool)) else getattr(row, key) + value)

    def close():
        event, _, counted, inner = stack.pop()
        if stack:
            stack[-1][3] += event["dur"]
        if counted is not None and counted != "own":
            return  # part of a larger operation
        frames = [entry[0]["name"] for entry in stack]
        phase, own = phase_of(frames + [event["name"]]), event["dur"] - inner
        name, arguments = event["name"], event["args"]
        if counted == "own":
            found = op_formulas.cost(name, arguments, num_parameters)
            types = [t for t in arguments.get("Input type", []) if t in op_formulas.ELEMENT_BYTES]
            more = {"dtype": types[0] if types else ""}
            if found:
                more |= dataclasses.asdict(found)
            else:
                more |= {"bytes": float(op_formulas.operand_bytes(arguments)), "has_formula": False}
            add(phase, name, shapes_of(arguments), event["dur"], 1, **more)
        elif FRAME.match(name):
            add(phase, "outside of operations", "", own)
        else:
            add(phase, "views, allocation, dispatch", "", own, 1)

    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while stack and event["ts"] >= stack[-1][1]:
            close()
        counted = None
        enclosing = stack[-1][2] if stack else None
        if enclosing is not None:
            counted = "part"
        elif is_counted(event, num_parameters):
            counted = "own"
        stack.append([event, event["ts"] + event["dur"], counted, 0.0])
    while stack:
        close()
    return list(rows.values())


def is_counted(event, num_parameters):
    name = event["name"]
    if event["cat"] != "cpu_op" or FRAME.match(name):
        return False
    return not name.startswith("aten::") or op_formulas.cost(name, event["args"], num_parameters) is not None


def read_trace(path, num_parameters):
    """(length in s, rows) of each recorded step."""
    trace = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    events = [e for e in trace if e["ph"] == "X" and e.get("cat") in ("cpu_op", "user_annotation")]
    steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
    found = []
    for step in steps:
        inside = [e for e in events if e["tid"] == step["tid"] and step["ts"] <= e["ts"] < step["ts"] + step["dur"]]
        found.append((step["dur"] / 1e6, rows_of_step(inside, num_parameters)))
    return found


def allocations(flags, threads, folder):
    """Number and bytes of the blocks that the third step allocated, from the memory snapshots."""
    titan("train", *RECIPE, *flags, "--training.steps", 3, "--job.dump_folder", folder, "--profiling.enable_memory_snapshot",
          "--profiling.profile_freq", 1, "--profiling.profiler_warmup", 0, threads=threads)
    seen = []
    for step in (2, 3):
        path = pathlib.Path(folder) / f"memory_snapshot/iteration_{step}/rank0_memory_snapshot.pickle"
        made = [e["size"] for e in pickle.loads(path.read_bytes())["device_traces"][0] if e["action"] == "alloc"]
        seen.append((len(made), sum(made)))
    if seen[1][0] >= 100_000:
        raise RuntimeError("the record of allocations was cut: profile fewer steps")
    return seen[1][0] - seen[0][0], seen[1][1] - seen[0][1]


def recorded_step(flags, threads, steps):
    """(length of the median step in s, its rows, length of a step without recording, the estimate)."""
    estimate = json.loads(titan("estimate", "--ranks", 1, "--json", *RECIPE, *flags, threads=threads))
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        titan("train", *RECIPE, *flags, "--training.steps", 3 + 2 * steps, "--job.dump_folder", folder,
              "--profiling.enable_profiling", "--profiling.profile_freq", 3 + 2 * steps, "--profiling.profiler_warmup", 1,
              "--profiling.profiler_active", steps, threads=threads)
        trace = next(pathlib.Path(folder).glob("profile_traces/*/rank0_trace.json.gz"))
        recorded = sorted(read_trace(trace, estimate["num_parameters"]), key=lambda found: found[0])
        lines = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    plain = sorted(line["time_metrics/end_to_end(s)"] for line in lines[2:2 + steps])
    length, rows = recorded[len(recorded) // 2]
    return length, rows, plain[len(plain) // 2], estimate


def profile(flags, threads, steps):
    """The results of recorded_step and of allocations."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        return *recorded_step(flags, threads, steps), allocations(flags, threads, folder)


def bound_of(row, peaks):
    """(seconds of an operation at the peak that bounds it, "GEMM" or "memory")."""
    by_flops = row.flops / (peaks.bf16 if row.dtype == "c10::BFloat16" else peaks.fp32)
    by_bytes = row.bytes / peaks.memory
    return max((by_flops, "GEMM"), (by_bytes, "memory"))


def table(length, rows, peaks):
    lines = ["| phase | operation | shapes | calls | ms | share | GFLOP/s | GB/s | bound | of the bound |",
             "|---|---|---|---:|---:|---:|---:|---:|---|---:|"]
    small = collections.defaultdict(lambda: [0, 0, 0.0])
    for row in sorted(rows, key=lambda row: -row.time):
        seconds = row.time / 1e6
        if seconds < SMALL * length and row.name != "outside of operations":
            entry = small[row.phase]
            entry[0], entry[1], entry[2] = entry[0] + 1, entry[1] + row.calls, entry[2] + seconds
            continue
        rates = ["", "", "", ""]
        if row.has_formula and row.bytes:
            at_peak, bound = bound_of(row, peaks)
            rates = [f"{row.flops / seconds / 1e9:,.1f}" if row.flops else "", f"{row.bytes / seconds / 1e9:,.1f}", bound,
                     f"{100 * at_peak / seconds:.0f} %"]
        elif not row.has_formula:
            rates = ["", f">= {row.bytes / seconds / 1e9:,.1f}", "no formula", ""]
        lines.append(f"| {row.phase} | {row.name} | {row.shapes} | {row.calls or ''} | {1e3 * seconds:,.2f} | "
                     f"{100 * seconds / length:.1f} % | " + " | ".join(rates) + " |")
    for phase, (kinds, calls, seconds) in sorted(small.items(), key=lambda entry: -entry[1][2]):
        lines.append(f"| {phase} | {kinds} more rows below {100 * SMALL:.1f} % | | {calls} | {1e3 * seconds:,.2f} | "
                     f"{100 * seconds / length:.1f} % | | | | |")
    return lines


def summary(length, rows, plain, estimate, blocks, peaks):
    total = sum(row.time for row in rows) / 1e6
    outside = sum(row.time for row in rows if row.name == "outside of operations") / 1e6
    unknown = sum(row.time for row in rows if not row.has_formula) / 1e6
    flops_model = sum(row.flops_model for row in rows)
    expected = estimate["flops_per_step"]["causal_half"]
    at_peak = sum(bound_of(row, peaks)[0] for row in rows if row.has_formula)
    return [f"Recorded step {1e3 * length:,.1f} ms (not recorded: {1e3 * plain:,.1f} ms); the rows add up to "
            f"{100 * total / length:.2f} % of it, {100 * outside / length:.2f} % are outside of any operation (data, the engine of "
            f"autograd, our own code), {100 * unknown / length:.2f} % in operations without formula. Operations that run at their "
            f"bounds would take {1e3 * at_peak:,.1f} ms: the step is at {100 * at_peak / length:.0f} % of that. FLOPs by formulas: "
            f"{100 * flops_model / expected:.2f} % of what `titan estimate` says. {blocks[0]:,} allocations of "
            f"{blocks[1] / 2**20:,.1f} MiB together in a step after warm-up. The exponentials of its softmaxes, which no bound counts, "
            f"would take {1e3 * sum(row.exponentials for row in rows) / peaks.exp:,.1f} ms at the rate of ATen's exp.",
            "",
            f"Peaks beside it: GEMM {peaks.fp32 / 1e9:,.0f} GFLOP/s in fp32, {peaks.bf16 / 1e9:,.0f} in bf16; memory "
            f"{peaks.memory / 1e9:,.1f} GB/s; exp {peaks.exp / 1e9:,.2f} thousand million a second.", ""]


def against_aten(threads):
    """The table of ratios that ops_benchmark prints last, as Markdown."""
    if not OPS_BENCHMARK.exists():
        raise RuntimeError(f"{OPS_BENCHMARK} is not there; build it: ninja -C build/release benchmarks")
    run = subprocess.run([str(OPS_BENCHMARK), f"--threads={threads}", "--benchmark_repetitions=7",
                          "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=true",
                          "--benchmark_min_time=0.2"], capture_output=True, text=True, check=True, timeout=1800)
    return ratios_of(run.stdout)


def ratios_of(text):
    """The ratios that ops_benchmark prints: a line of names, then operations with one number per name."""
    lines = text.splitlines()
    begin = max(i for i, line in enumerate(lines) if line.startswith("operation"))
    head = re.findall(r"\S+ ms|of CPU time|\S+", lines[begin])
    rows = [line.rsplit(None, len(head) - 1) for line in lines[begin + 1:] if line.strip()]
    if not rows or any(len(row) != len(head) for row in rows):
        raise RuntimeError(f"ops_benchmark prints another table than this script reads: {lines[begin:]}")
    return ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"] + ["| " + " | ".join(row) + " |" for row in rows]


FAMILIES = [("attention", r"(titan|aten)::.*attention.*"),
            ("head and loss", r"titan::.*cross_entropy.*|aten::.*(nll_loss|log_softmax|cross_entropy).*"),
            ("products of matrices", r"aten::(mm|bmm|addmm_?|baddbmm_?|linear)|titan::(linear|grouped_mm).*")]


def family_of(row):
    if row.phase in ("optimizer", "clipping"):
        return "optimizer and clipping"
    if not row.calls or row.name.startswith("views"):
        return "outside of operations, views, dispatch"
    return next((name for name, pattern in FAMILIES if re.fullmatch(pattern, row.name)), "everything else")


def overview(found):
    """Shares of each job's step by kind of operation. `found`: length, rows and peaks of each job."""
    names = [*(name for name, _ in FAMILIES), "everything else", "optimizer and clipping", "outside of operations, views, dispatch"]
    lines = ["| share of the step (of the bound) | " + " | ".join(found) + " |", "|---" + "|---:" * len(found) + "|"]
    for name in names:
        cells = []
        for length, rows, peaks in found.values():
            time = sum(row.time for row in rows if family_of(row) == name) / 1e6
            at_peak = sum(bound_of(row, peaks)[0] for row in rows if family_of(row) == name and row.has_formula)
            cells.append(f"{100 * time / length:.1f} %" + (f" ({100 * at_peak / time:.0f} %)" if at_peak else ""))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def write(path, name, lines):
    text = path.read_text()
    pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end of {re.escape(name)} -->)", re.S)
    if not pattern.search(text):
        raise RuntimeError(f"{path} has no place for table '{name}'")
    path.write_text(pattern.sub(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="fill in the tables of this note")
    parser.add_argument("--only", choices=list(JOBS), action="append", help="only these jobs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5, help="number of recorded steps; the median is shown")
    parser.add_argument("--no-ops", action="store_true", help="without the table against ATen's composition")
    options = parser.parse_args()
    found = {}
    for name in options.only or JOBS:
        flags, what = JOBS[name]
        peaks = measure_peaks(options.threads)
        length, rows, plain, estimate, blocks = profile(flags, options.threads, options.steps)
        peaks = peaks.best_of(measure_peaks(options.threads))
        found[name] = length, rows, peaks
        text = [f"{what}; {options.threads} thread{'s' * (options.threads > 1)}.", "",
                *summary(length, rows, plain, estimate, blocks, peaks), *table(length, rows, peaks)]
        print("\n".join(text) + "\n", flush=True)
        if options.write:
            write(options.write, name, text)
    print("\n".join(overview(found)) + "\n", flush=True)
    if options.write and len(found) == len(JOBS):
        write(options.write, "overview", overview(found))
    if not options.no_ops:
        text = against_aten(options.threads)
        print("\n".join(text))
        if options.write:
            threads = f"{options.threads} thread{'s' * (options.threads > 1)}"
            write(options.write, "ops", [f"{threads}, medians of 7 interleaved repetitions.", "", *text])


if __name__ == "__main__":
    main()
