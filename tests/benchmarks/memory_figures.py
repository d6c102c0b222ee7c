#!/usr/bin/env python3
"""Compares `titan estimate` with real runs and with published figures.

Real runs: CPU ranks whose tensor bytes are counted ([device] count_tensors), the peak of the second step of
each rank, for one rank, FSDP, tensor parallelism and a pipeline, with and without activation checkpointing. Over gloo, which
estimates assume. Judged: every
prediction in fp32 within 2 % of its measurement. Computation in bf16 is shown, not judged: the CPU's norms, gates and
rotations first make fp32 copies of 16-bit operands, which GPU kernels do not and estimates leave out. Published: what
torchtitan's report of December 2024 gives for H100 GPUs, next to Titan's estimate and the whole logits; shown, not judged.

    python3 tests/benchmarks/memory_figures.py                                  # runs and judges; exit code 1 beyond 2 %
    python3 tests/benchmarks/memory_figures.py --write docs/guides/memory_estimate.md  # and fills in the tables of the note
    python3 tests/benchmarks/memory_figures.py --quick                          # four of the real runs
    python3 tests/benchmarks/memory_figures.py --only modes --write docs/guides/activation_checkpointing.md

ctest sets TITAN_SOURCE_DIR and TITAN_PROGRAM.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
GIB = 2**30
LIMIT = 0.02

RECIPE = ["--job.config_file", "train_configs/debug_model.toml", "--device.name", "cpu", "--device.transport", "gloo",
          "--training.seq_len", 512,
          "--training.local_batch_size", 4, "--training.steps", 2, "--lr_scheduler.warmup_steps", 0,
          "--lr_scheduler.decay_ratio", 0, "--metrics.log_freq", 1, "--metrics.save_for_all_ranks", "--metrics.loggers",
          "jsonl", "--metrics.no_enable_tensorboard"]
LAYOUTS = {
    "1 rank": (1, []),
    "FSDP 2": (2, ["--parallelism.data_parallel_shard_degree", 2]),
    "TP 2": (2, ["--parallelism.tensor_parallel_degree", 2]),
    "PP 2, 1F1B": (2, ["--parallelism.pipeline_parallel_degree", 2, "--parallelism.pipeline_parallel_schedule", "1F1B"]),
}
CHECKPOINTING = {
    "none": ["--activation_checkpoint.mode", "none"],
    "full": ["--activation_checkpoint.mode", "full"],
    "selective, op": ["--activation_checkpoint.mode", "selective", "--activation_checkpoint.selective_ac_option", "op"],
}
DTYPES = {"fp32": ["--training.mixed_precision_param", "float32"], "bf16": ["--training.mixed_precision_param", "bfloat16"]}
CASES = [(layout, checkpointing, "fp32") for layout in LAYOUTS for checkpointing in CHECKPOINTING]
SHOWN = [("1 rank", "none", "bf16"), ("1 rank", "full", "bf16"), ("FSDP 2", "full", "bf16")]
QUICK = [("1 rank", "selective, op", "fp32"), ("FSDP 2", "full", "fp32"), ("TP 2", "none", "fp32"),
         ("PP 2, 1F1B", "full", "fp32")]


def titan(*arguments, timeout=300):
    done = subprocess.run([TITAN, *map(str, arguments)], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"titan {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def measured(flags, ranks):
    """Peak bytes of the tensors of each rank in its second step."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        launch = ["launch", "--nproc", ranks, "--log-dir", folder, "--"] if ranks > 1 else []
        titan(*launch, "train", *flags, "--job.dump_folder", folder, "--device.count_tensors")
        peaks = []
        for rank in range(ranks):
            last = json.loads((pathlib.Path(folder) / f"metrics_rank_{rank}.jsonl").read_text().splitlines()[-1])
            peaks.append(round(last["memory/max_active(GiB)"] * GIB))
        return peaks


def estimated(flags, ranks):
    return json.loads(titan("estimate", "--ranks", ranks, "--json", *flags))


def compare(layout, checkpointing, dtype):
    """(predicted, measured, place) of each pipeline rank: the highest of the ranks with that pipeline rank."""
    ranks, degrees = LAYOUTS[layout]
    flags = [*RECIPE, *degrees, *CHECKPOINTING[checkpointing], *DTYPES[dtype]]
    estimate = estimated(flags, ranks)["ranks"]
    peaks = measured(flags, ranks)
    share = ranks // len(estimate)
    return [(rank["peak_bytes"], max(peaks[i * share:(i + 1) * share]), rank["peak_place"])
            for i, rank in enumerate(estimate)]


def reality(cases):
    rows, worst = [], 0
    for layout, checkpointing, dtype in cases:
        begin = time.monotonic()
        for i, (predicted, real, place) in enumerate(compare(layout, checkpointing, dtype)):
            error = predicted / real - 1
            worst = max(worst, abs(error)) if dtype == "fp32" else worst
            name = f"{layout}, pipeline rank {i}" if layout.startswith("PP") else layout
            rows.append(f"| {name} | {checkpointing} | {dtype} | {predicted:,} | {real:,} | {100 * error:+.3f} % | {place} |")
            print(rows[-1], f"{time.monotonic() - begin:.1f} s", flush=True)
    head = ["| layout | activation checkpointing | computes in | estimated (bytes) | measured (bytes) | error | highest in |",
            "|---|---|---|---:|---:|---:|---|"]
    return head + rows, worst


# (name, flavor, ranks, flags, rows and tokens whose logits exist at once, ranks that share them, published GiB)
PUBLISHED = [
    ("8B, FSDP 8, selective (op)", "8B", 8, [2, 8192], 2 * 8192, 1, 82.4, "op"),
    ("8B, FSDP 128, selective (op)", "8B", 128, [2, 8192], 2 * 8192, 1, 67.0, "op"),
    ("8B, FSDP 8, 32k tokens, full", "8B", 8, [1, 32768], 32768, 1, 83.9, "full"),
    ("70B, FSDP 32, TP 8, full", "70B", 256, [16, 8192, "tp", 8], 16 * 8192, 8, 71.9, "full"),
    ("405B, FSDP 8, TP 8, PP 8, 1F1B, full", "405B", 512, [32, 8192, "tp", 8, "pp", 8, "1F1B"], 8192, 8, 82.5, "full"),
    ("405B, FSDP 8, TP 8, PP 8, interleaved, full", "405B", 512, [32, 8192, "tp", 8, "pp", 8, "Interleaved1F1B"], 8192, 8,
     72.7, "full"),
]
VOCABULARY = 128256


def published():
    rows = []
    for name, flavor, ranks, shape, tokens, shares, theirs, mode in PUBLISHED:
        flags = ["--model.name", "llama3", "--model.flavor", flavor, "--training.local_batch_size", shape[0],
                 "--training.seq_len", shape[1], "--metrics.loggers", "jsonl", "--training.dataset", "synthetic"]
        if "tp" in shape:
            flags += ["--parallelism.tensor_parallel_degree", 8]
        if "pp" in shape:
            flags += ["--parallelism.pipeline_parallel_degree", 8, "--parallelism.pipeline_parallel_schedule", shape[-1]]
        flags += CHECKPOINTING["full" if mode == "full" else "selective, op"]
        estimate = estimated(flags, ranks)
        largest = estimate["ranks"][estimate["largest_pipeline_rank"]]
        last = estimate["ranks"][-1]
        logits = tokens * VOCABULARY // shares * (2 + 4 + 4)
        rows.append(f"| {name} | {theirs:.1f} | {largest['peak_bytes'] / GIB:.1f} | {largest['peak_place']} | "
                    f"{last['peak_bytes'] / GIB:.1f} | {logits / GIB:.1f} | "
                    f"{max(largest['peak_bytes'], last['peak_bytes'] + logits) / GIB:.1f} |")
        print(rows[-1], flush=True)
    return ["| layout | published (GiB) | estimate, largest rank | highest in | estimate, rank with the head | whole logits | "
            "the larger of both with them |", "|---|---:|---:|---|---:|---:|---:|"] + rows


MODES = {
    "none": ["none"],
    "selective, 2": ["selective"],
    "selective, op": ["selective", "--activation_checkpoint.selective_ac_option", "op"],
    "memory_budget, 0.5": ["memory_budget"],
    "memory_budget, memory_limit 40GiB": ["memory_budget", "--activation_checkpoint.memory_limit", "40GiB"],
    "full": ["full"],
    "full, early_stop": ["full", "--activation_checkpoint.early_stop"],
    "offload": ["offload"],
}


def modes():
    """The table of docs/guides/activation_checkpointing.md: Llama 3.1 8B on 8 ranks, 2 sequences of 8,192 tokens each."""
    rows = []
    for name, flags in MODES.items():
        estimate = estimated(["--model.name", "llama3", "--model.flavor", "8B", "--training.local_batch_size", 2,
                              "--training.seq_len", 8192, "--metrics.loggers", "jsonl", "--training.dataset", "synthetic",
                              "--activation_checkpoint.mode", *flags], 8)
        rank = estimate["ranks"][0]
        rows.append(f"| {name} | {rank['stages'][0]['activation_bytes'] / GIB:.1f} | {rank['peak_bytes'] / GIB:.1f} | "
                    f"{rank['peak_place'].split(',')[0]} | {100 * rank['recomputed_flops'] / rank['flops']:.1f} % |")
        print(rows[-1], flush=True)
    return ["| mode | kept for the backward (GiB) | peak (GiB) | highest in | work repeated, of forward and backward |",
            "|---|---:|---:|---|---:|"] + rows


def write(path, name, lines):
    text = pathlib.Path(path).read_text()
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.S)
    if not pattern.search(text):
        raise RuntimeError(f"{path} has no place for table '{name}'")
    pathlib.Path(path).write_text(pattern.sub(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", help="fill in the tables of this note")
    parser.add_argument("--quick", action="store_true", help="four real runs only")
    parser.add_argument("--only", choices=["reality", "published", "modes"])
    options = parser.parse_args()
    worst = 0
    if options.only == "modes":
        table = modes()
        if options.write:
            write(options.write, "modes", table)
        return 0
    if options.only != "published":
        cases = QUICK if options.quick else CASES + SHOWN
        table, worst = reality(cases)
        if options.write:
            write(options.write, "reality", table)
    if options.only != "reality" and not options.quick:
        table = published()
        if options.write:
            write(options.write, "published", table)
    if worst > LIMIT:
        print(f"an estimate is {100 * worst:.2f} % off, more than {100 * LIMIT:.0f} %", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
