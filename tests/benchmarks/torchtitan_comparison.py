"""Compares Titan with torchtitan v0.2.2's own code in alternating pairs, by titan bench --against, on the CPUs of one machine.

  python -m venv --system-site-packages bench && bench/bin/pip install --no-deps torchtitan==0.2.2   # with torch 2.15 or 2.11;
  bench/bin/pip install tyro torchdata tensorboard
  bench/bin/python tests/benchmarks/torchtitan_comparison.py [--only NAME...] [--pairs 7] [--steps 8] [--results FOLDER]
      [--write docs/results/benchmarks_torchtitan.md]

Each case's result is kept in --results as titan bench --json writes it; a case with a result is not measured again, so the table
can be made in several sessions. The table shows the error of cases that torchtitan cannot run. Needs build/release/bin/titan
and its plugin bench; tests/benchmarks/torchtitan_side.py is torchtitan's side.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys

from op_profile import write

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIDE = ROOT / "tests/benchmarks/torchtitan_side.py"
FEWEST_PAIRS = 7  # of titan bench
LARGE = ("--model.dim 768 --model.n_layers 12 --model.n_heads 12 --model.vocab_size 32000 --training.seq_len 1024").split()
BF16 = ["--training.mixed_precision_param", "bfloat16"]
TWO_RANKS = {
    # layout: Titan's flags, sequences of all ranks
    "fsdp": (["--parallelism.data_parallel_shard_degree", "2", "--training.local_batch_size", "1"], 2),
    "tp": (["--parallelism.tensor_parallel_degree", "2", "--training.local_batch_size", "2"], 2),
    "pp": (["--parallelism.pipeline_parallel_degree", "2", "--training.local_batch_size", "4",
            "--parallelism.pipeline_parallel_schedule", "1F1B"], 4),
    "cp": (["--parallelism.context_parallel_degree", "2", "--training.local_batch_size", "2"], 2),
}
ONE_RANK = ["--training.local_batch_size", "2", "--parallelism.data_parallel_shard_degree", "1"]


class Comparison:
    """One row: Titan's flags, and the arguments of the other side or, for `alone`, Titan's flags on one rank."""

    def __init__(self, title, flags, side=None, ranks=1, alone=False):
        self.title, self.flags, self.side, self.ranks, self.alone = title, flags, side, ranks, alone

    def command(self, arguments, result):
        words = [arguments.titan, "bench", "--job.config_file", ROOT / "train_configs/debug_model.toml", *self.flags,
                 *arguments.titan_flags.split(), "--pairs", arguments.pairs, "--warmup", arguments.warmup, "--steps", arguments.steps,
                 "--json", result]
        if self.ranks > 1:
            words += ["--nproc", self.ranks]
        if self.alone:
            words += ["--vs-nproc", "1", "--vs-flags", " ".join(ONE_RANK)]
        else:
            words += ["--against", shlex.join([sys.executable, "-W", "ignore", str(SIDE), *self.side, "--ranks", str(self.ranks)])]
        return [str(word) for word in words]


def cases():
    """Cases by name, in the order of the table."""
    found = {}
    for model, flags in (("debug", []), ("100m", LARGE)):
        for dtype, more in (("float32", []), ("bfloat16", BF16)):
            for how, compiled in (("eager", []), ("compiled", ["--compile"])):
                found[f"{model}-{dtype}-{how}"] = Comparison(
                    f"{model}, {dtype}, torchtitan {how}", flags + more + ONE_RANK, ["--model", model, "--dtype", dtype, *compiled])
    for layout, (flags, batch) in TWO_RANKS.items():
        found[f"debug-{layout}2"] = Comparison(f"debug, float32, {layout.upper()} 2, both on two ranks", flags,
                                               ["--layout", layout, "--batch", str(batch)], ranks=2)
    found["debug-fsdp2-alone"] = Comparison("debug, float32, Titan's FSDP 2 over Titan's one rank with the threads of both",
                                            TWO_RANKS["fsdp"][0], ranks=2, alone=True)
    return found


def measure(case, arguments, result):
    """Writes titan bench's JSON to `result`, or the reason of a failure under "error"."""
    # launch divides the CPUs among ranks; one rank uses all
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    run = subprocess.run(case.command(arguments, result), cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.stderr.write(run.stderr)
        lines = [line.strip() for line in run.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "Error" in line or "error:" in line] or lines[-1:]
        result.write_text(json.dumps({"error": errors[-1]}))


def ratio_text(ratio):
    if ratio is None:
        return "not counted"
    interval = f"{ratio['low']:.2f} to {ratio['high']:.2f}" if ratio["low"] is not None else "no interval"
    verdict = "" if ratio["verdict"] != "inconclusive" else ", inconclusive"
    return f"{ratio['median']:.2f} ({interval}{verdict})"


def row(case, result):
    if "error" in result:
        return f"| {case.title} | cannot run: {result['error'].replace('|', '/')} | | | | |"
    ratios = result["pairs"]["ratios"]
    shares = sorted(run["share_of_gemm"]["full_attention"] for run in result["pairs"]["a"])
    figures = [ratio_text(ratios.get(name)) for name in ("tokens_per_second", "cpu_seconds", "peak_bytes", "gemm_flops")]
    return "| " + " | ".join([case.title, *figures, f"{100 * shares[len(shares) // 2]:.0f} %"]) + " |"


def table(results, arguments):
    devices = sorted({result["pairs"]["a"][0]["device"] for _, result in results if "error" not in result})
    return [f"{', '.join(devices)}; {arguments.pairs} pairs of {arguments.steps} steps each.", "",
            "| case | tokens/s | CPU seconds | peak memory | GEMM | of the GEMM |", "|---|---|---|---|---|---|",
            *(row(case, result) for case, result in results)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--titan", type=pathlib.Path, default=ROOT / "build/release/bin/titan")
    parser.add_argument("--only", nargs="*", choices=list(cases()), help="only these cases")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--titan-flags", default="", help="more flags of Titan in every case, such as '--compile.enable'")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/torchtitan_comparison")
    parser.add_argument("--write", type=pathlib.Path, help="a Markdown file whose table is filled in")
    arguments = parser.parse_args()
    if arguments.pairs < FEWEST_PAIRS:
        parser.error(f"--pairs: titan bench takes {FEWEST_PAIRS} at least, got {arguments.pairs}")
    arguments.results.mkdir(parents=True, exist_ok=True)
    results = []
    for name, case in cases().items():
        result = arguments.results / f"{name}.json"
        if not result.exists() and (arguments.only is None or name in arguments.only):
            measure(case, arguments, result)
        if result.exists():
            results.append((case, json.loads(result.read_text())))
            print(row(*results[-1]), flush=True)
    if arguments.write:
        write(arguments.write, "cases", table(results, arguments))


if __name__ == "__main__":
    main()
