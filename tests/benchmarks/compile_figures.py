#!/usr/bin/env python3
"""Measures the savings of `[compile]`: the debug model on one thread without it, with it, and with single passes of the
backend 'fused'.

Work: user cycles of a step, from runs of two lengths, so that the start does not count; by the CPU's counters (perf),
or, if they cannot be read, seconds of CPU time. The runs of both alternate; the figure is the minimum of each. Memory:
the peak of the second step in bytes of tensors ([device] count_tensors). Judged: fused takes less memory.

    python3 tests/benchmarks/compile_figures.py                          # prints the table
    python3 tests/benchmarks/compile_figures.py --write docs/guides/compile.md  # and fills it in
    python3 tests/benchmarks/compile_figures.py --turns 1 --only fp32    # shorter

TITAN_SOURCE_DIR and TITAN_PROGRAM name another tree and program.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
GIB = 2**30
SHORT, LONG = 2, 5  # steps

RECIPE = ["--job.config_file", "train_configs/debug_model.toml", "--device.name", "cpu", "--lr_scheduler.warmup_steps", 0,
          "--lr_scheduler.decay_ratio", 0, "--metrics.loggers", "jsonl", "--metrics.no_enable_tensorboard"]
DTYPES = {"fp32": ["--training.mixed_precision_param", "float32"], "bf16": ["--training.mixed_precision_param", "bfloat16"]}
PASSES = ("attention_inputs", "feed_forward", "residual_norm")
WAYS = {
    "without": [],
    "`fused`": ["--compile.enable"],
    **{f"`{one}` alone": ["--compile.enable", *[f"--compile_backend.fused.no_{other}" for other in PASSES if other != one]]
       for one in PASSES},
}


def train(flags, steps, folder, counted):
    """Runs `steps` steps; returns user cycles, or None, and seconds of CPU time."""
    events = pathlib.Path(folder) / "events"
    perf = ["perf", "stat", "-e", "cycles:u", "-x", ",", "-o", events] if counted else []
    command = [*perf, TITAN, "train", *RECIPE, *flags, "--training.steps", steps, "--job.dump_folder", folder]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(list(map(str, command)), cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=1800)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    cycles = re.search(r"^(\d+),,cycles", events.read_text(), re.MULTILINE) if counted else None
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return int(cycles.group(1)) if cycles else None, seconds


def has_counters():
    try:
        done = subprocess.run(["perf", "stat", "-e", "cycles:u", "-x", ",", "true"], capture_output=True, text=True, timeout=60)
    except OSError:
        return False
    return done.returncode == 0 and re.search(r"^\d+,,cycles", done.stderr, re.MULTILINE) is not None


def work_of_a_step(flags, counted):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        short, long = (train(flags, steps, folder, counted) for steps in (SHORT, LONG))
    index = 0 if counted else 1
    return (long[index] - short[index]) / (LONG - SHORT)


def peak(flags):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        train([*flags, "--device.count_tensors", "--metrics.log_freq", 1], 2, folder, False)
        last = json.loads((pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()[-1])
        return round(last["memory/max_active(GiB)"] * GIB)


def measure(dtypes, turns, counted):
    unit = "user cycles" if counted else "CPU time"
    rows = [f"| computes in | compile | {unit} of a step, without = 1 | highest memory (MiB) |", "|---|---|---:|---:|"]
    saves = True
    for dtype in dtypes:
        works = {name: [] for name in WAYS}
        for _ in range(turns):
            for name, flags in WAYS.items():
                works[name].append(work_of_a_step([*DTYPES[dtype], *flags], counted))
        peaks = {name: peak([*DTYPES[dtype], *flags]) for name, flags in WAYS.items()}
        for name in WAYS:
            ratio = min(works[name]) / min(works["without"])
            rows.append(f"| {dtype} | {name} | {ratio:.3f} | {peaks[name] / 2**20:,.1f} |")
            print(rows[-1], flush=True)
        saves = saves and peaks["`fused`"] < peaks["without"]
    return rows, saves


def write(path, rows):
    text = path.read_text()
    new, count = re.subn(r"(<!-- figures -->\n)(?:\|[^\n]*\n)*", lambda mark: mark.group(1) + "\n".join(rows) + "\n", text)
    if count != 1:
        raise SystemExit(f"{path} has {count} places '<!-- figures -->' instead of one")
    path.write_text(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=DTYPES, help="only this dtype")
    parser.add_argument("--turns", type=int, default=5, help="runs of each")
    parser.add_argument("--write", type=pathlib.Path, help="note whose table is filled in")
    arguments = parser.parse_args()
    counted = has_counters()
    rows, saves = measure([arguments.only] if arguments.only else list(DTYPES), arguments.turns, counted)
    if arguments.write:
        write(arguments.write, rows)
    if not saves:
        print("fused does not take less memory")
    return 0 if saves else 1


if __name__ == "__main__":
    sys.exit(main())
