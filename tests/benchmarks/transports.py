#!/usr/bin/env python3
"""Compares shared memory with gloo between ranks of this machine: collectives by size, and steps of the debug model on two ranks under four
layouts. Both take turns, so each pair is measured at the same time; ratios are gloo's time over shared memory's. Losses of each
pair must be equal; exit code 1 when they are not.

    ninja -C build/release transports
    .venv/bin/python tests/benchmarks/transports.py
    .venv/bin/python tests/benchmarks/transports.py --write FILE
    .venv/bin/python tests/benchmarks/transports.py --largest 65536 --pairs 1 --steps 5      # a quick look

TITAN_PROGRAM names the program; `transports` is searched in its build tree.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = pathlib.Path(os.environ.get("TITAN_PROGRAM", ROOT / "build/release/bin/titan"))
LAYOUTS = {
    "FSDP 2": [],
    "TP 2": ["--parallelism.tensor_parallel_degree", "2"],
    "PP 2": ["--parallelism.pipeline_parallel_degree", "2"],
    "CP 2": ["--parallelism.context_parallel_degree", "2"],
}
TRANSPORTS = ("gloo", "shared_memory")
WARM_UP = 2  # steps that do not count
HEADING = """# Figures of the transport through shared memory

`.venv/bin/python tests/benchmarks/transports.py {arguments}`: {cpus} CPUs, one thread per rank. Gloo and shared memory take turns.

"""


def size_in_words(count):
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def time_in_words(seconds):
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def collectives(program, largest, repeats):
    """Rows of the first table."""
    lines = ["| operation | ranks | size | gloo | shared memory | ratio: median (quartiles) | shared memory, GB/s |",
             "|---|---|---|---|---|---|---|"]
    done = subprocess.run([program, str(largest), str(repeats)], check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    for found in map(json.loads, done.stdout.splitlines()):
        low, median, high = found["ratio"]
        lines.append(f"| {found['operation']} | {found['ranks']} | {size_in_words(found['bytes'])} | {time_in_words(found['gloo'])} | "
                     f"{time_in_words(found['shared_memory'])} | {median:.2f} ({low:.2f} to {high:.2f}) | "
                     f"{found['bytes'] / found['shared_memory'] / 1e9:.2f} |")
    return lines


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train(transport, flags, steps, folder):
    """(seconds of a step, CPU seconds of all ranks, losses)."""
    before = cpu_seconds()
    subprocess.run([TITAN, "launch", "--nproc", "2", "--log-dir", folder / "logs", "--", "train", "--job.config_file",
                    "train_configs/debug_model.toml", "--training.steps", str(steps), "--training.seq_len", "512",
                    "--training.local_batch_size", "2", "--training.global_batch_size", "4", "--metrics.log_freq", "1",
                    "--metrics.no_enable_tensorboard", "--lr_scheduler.warmup_steps", "2", "--device.transport", transport,
                    "--job.dump_folder", folder, *flags], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})
    cpu = cpu_seconds() - before
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "loss_metrics/global_avg_loss" in row]
    times = [row["wall_time"] for row in rows]
    losses = [row["loss_metrics/global_avg_loss"] for row in rows]
    return statistics.median(b - a for a, b in zip(times[WARM_UP:], times[WARM_UP + 1:])), cpu, losses


def layouts(pairs, steps):
    """Rows of the second table, and whether all losses are equal."""
    lines = ["| debug model | gloo, step | shared memory, step | ratio of steps: median | ratio of CPU seconds: median | losses |",
             "|---|---|---|---|---|---|"]
    all_equal = True
    for name, flags in LAYOUTS.items():
        found = []
        for number in range(pairs):
            turns = TRANSPORTS if number % 2 else TRANSPORTS[::-1]
            results = {}
            for transport in turns:
                with tempfile.TemporaryDirectory() as folder:
                    results[transport] = train(transport, flags, steps, pathlib.Path(folder))
            found.append([results[transport] for transport in TRANSPORTS])
        equal = all(gloo[2] == shared[2] for gloo, shared in found)
        all_equal = all_equal and equal
        step = [statistics.median(pair[i][0] for pair in found) for i in (0, 1)]
        ratio = [statistics.median(gloo[i] / shared[i] for gloo, shared in found) for i in (0, 1)]
        lines.append(f"| {name} | {time_in_words(step[0])} | {time_in_words(step[1])} | {ratio[0]:.3f} | {ratio[1]:.3f} | "
                     f"{'equal' if equal else 'DIFFER'} |")
        print(lines[-1], file=sys.stderr)
    return lines, all_equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=64 << 20, help="bytes of the largest tensor")
    parser.add_argument("--repeats", type=int, default=15, help="repeats of each collective and size")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of training runs for each layout")
    parser.add_argument("--steps", type=int, default=20, help="steps of each training run")
    parser.add_argument("--write", metavar="FILE", type=pathlib.Path, help="writes the tables there")
    args = parser.parse_args()
    if args.steps < WARM_UP + 2:
        parser.error(f"--steps: at least {WARM_UP + 2}, for the first {WARM_UP} do not count")
    program = TITAN.parent.parent / "tests" / "benchmarks" / "transports"
    if not program.exists():
        program = TITAN.parent / "transports"
    if not program.exists():
        parser.error("build it first: ninja -C build/release transports")
    lines = collectives(program, args.largest, args.repeats)
    rows, all_equal = layouts(args.pairs, args.steps)
    text = "\n".join([*lines, "", *rows]) + "\n"
    print(text)
    if args.write:
        args.write.write_text(HEADING.format(arguments=" ".join(sys.argv[1:]), cpus=os.cpu_count()) + text)
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())
