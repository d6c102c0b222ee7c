"""Measures training of the debug model: start-up, first step, tokens per second, peak memory, and the speed of a matrix product for
reference.

  .venv/bin/python tests/benchmarks/train_benchmark.py [--steps 12] [--rounds 3] [--write docs/results/benchmarks.md]

Machines are noisy: the GEMM rate is measured before and after each round, and the result is the ratio of both.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOPS_PER_TOKEN = 0.0716e9  # debug model at 2,048 tokens, full attention (docs/internals/architecture.md names the convention)


def gemm_flops(threads: int) -> float:
    """FLOP/s of an fp32 product of 2048 x 2048 matrices, best of 5."""
    code = (
        "import time, torch\n"
        f"torch.set_num_threads({threads})\n"
        "a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)\n"
        "a @ b\n"
        "best = min((lambda t: (a @ b, time.perf_counter() - t)[1])(time.perf_counter()) for _ in range(5))\n"
        "print(2 * 2048**3 / best)\n"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def train(titan: pathlib.Path, steps: int, threads: int) -> dict:
    """One run: seconds from launch to the end of step 1, the first step alone, and each later step's figures."""
    with tempfile.TemporaryDirectory() as folder:
        command = [titan, "train", "--job.config_file", ROOT / "train_configs/debug_model.toml",
                   "--job.dump_folder", folder, "--training.steps", str(steps), "--lr_scheduler.warmup_steps", "1",
                   "--metrics.log_freq", "1"]
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        start = time.time()
        subprocess.run([str(word) for word in command], cwd=ROOT, env=environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = [json.loads(line) for line in open(pathlib.Path(folder) / "metrics.jsonl")]
    first = lines[0]["time_metrics/end_to_end(s)"]
    later = lines[2:] or lines
    return {
        "to_first_step_end": lines[0]["wall_time"] - start,
        "first_step": first,
        "start_up": lines[0]["wall_time"] - start - first,
        "tokens_per_second": statistics.median(line["throughput(tps)"] for line in later),
        "peak_gib": max(line["memory/max_active(GiB)"] for line in lines),
        "data_loading_percent": statistics.median(line["time_metrics/data_loading(%)"] for line in later),
    }


def version_seconds(titan: pathlib.Path) -> float:
    """Seconds of `titan --version`, process start included: the minimum of ten."""
    def once() -> float:
        start = time.perf_counter()
        subprocess.run([titan, "--version"], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start
    return min(once() for _ in range(10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--titan", type=pathlib.Path, default=ROOT / "build/release/bin/titan")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", type=pathlib.Path, help="a Markdown file to put the figures into")
    arguments = parser.parse_args()

    train(arguments.titan, 1, arguments.threads)  # warms the page cache: all measured starts are later ones
    rows = []
    for _ in range(arguments.rounds):
        before = gemm_flops(arguments.threads)
        row = train(arguments.titan, arguments.steps, arguments.threads)
        row["version"] = version_seconds(arguments.titan)
        row["gemm_gflops"] = (before + gemm_flops(arguments.threads)) / 2 / 1e9
        row["gemm_ratio"] = row["tokens_per_second"] * FLOPS_PER_TOKEN / 1e9 / row["gemm_gflops"]
        rows.append(row)
        print(" ".join(f"{key}={value:.3f}" for key, value in row.items()), flush=True)

    names = {
        "version": "titan --version (s)",
        "start_up": "launch to the start of step 1, weights initialised (s)",
        "first_step": "first step (s)",
        "to_first_step_end": "launch to the end of step 1 (s)",
        "tokens_per_second": "tokens per second",
        "gemm_gflops": "fp32 GEMM beside it (GFLOP/s)",
        "gemm_ratio": "model FLOP/s over GEMM FLOP/s",
        "peak_gib": "peak memory of the process (GiB)",
        "data_loading_percent": "time waiting for data (%)",
    }
    table = ["| figure | minimum | median | maximum |", "|---|---|---|---|"]
    for key, name in names.items():
        values = [row[key] for row in rows]
        table.append(f"| {name} | {min(values):.3f} | {statistics.median(values):.3f} | {max(values):.3f} |")
    print("\n".join(table))
    if arguments.write:
        text = ("# Benchmarks\n\nDebug model (6,163,712 parameters), fp32, batch 2 x 2,048 tokens, "
                f"{arguments.threads} CPU threads, {arguments.rounds} rounds of {arguments.steps} steps. Made by\n\n"
                "    .venv/bin/python tests/benchmarks/train_benchmark.py "
                f"--steps {arguments.steps} --rounds {arguments.rounds} --write {arguments.write}\n\n")
        arguments.write.write_text(text + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
