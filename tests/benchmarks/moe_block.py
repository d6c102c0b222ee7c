"""Compares the speed of a mixture-of-experts block with that of transformers, and its products with a loop over experts.

  ninja -C build/release benchmarks
  .venv/bin/python tests/benchmarks/moe_block.py --write docs/guides/mixture_of_experts.md    # 15 minutes on two busy cores

Titan's block (gate, choices, experts, sum; forward and backward of all inputs and weights) runs in ops_benchmark, that of transformers
here: MixtralSparseMoeBlock with its loop over experts and with its grouped products. Weights and inputs are equal,
drawn from the same seed. Both sides take turns, round by round; a cell is the median of the rounds.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
from transformers.models.mixtral import configuration_mixtral, modeling_mixtral

from op_profile import write

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
OPS_BENCHMARK = ROOT / "build/release/bin/ops_benchmark"
DIM = 256
BLOCKS = {  # as ops_benchmark_experts.cpp has them: experts, used, width of one, tokens, type
    "moe_block_8": (8, 2, 512, 4096, torch.float32),
    "moe_block_64": (64, 8, 768, 1024, torch.float32),
    "moe_block_8_bf16": (8, 2, 512, 512, torch.bfloat16),
}
GROUPED = {"grouped_8x256x512": "8 experts, 8,192 rows, 256 x 512, fp32", "grouped_64x256x768": "64 experts, 4,096 rows, 256 x 768, fp32",
           "grouped_8x256x512_bf16": "8 experts, 1,024 rows, 256 x 512, bf16"}


def block_of_transformers(name, implementation):
    """(function that runs forward and backward once, sum of the squares of its output)."""
    experts, used, hidden, tokens, dtype = BLOCKS[name]
    config = configuration_mixtral.MixtralConfig(hidden_size=DIM, intermediate_size=hidden, num_local_experts=experts,
                                                 num_experts_per_tok=used)
    config._experts_implementation = implementation
    block = modeling_mixtral.MixtralSparseMoeBlock(config).to(dtype)
    torch.manual_seed(1)
    x = torch.randn(1, tokens, DIM).to(dtype).requires_grad_()
    gate, w1, w3, w2 = (torch.randn(shape) * 0.05 for shape in
                        [(experts, DIM), (experts, hidden, DIM), (experts, hidden, DIM), (experts, DIM, hidden)])
    with torch.no_grad():
        block.gate.weight.copy_(gate)
        block.experts.gate_up_proj.copy_(torch.cat([w1, w3], 1))
        block.experts.down_proj.copy_(w2)
    seed = torch.randn(1, tokens, DIM).to(dtype)
    inputs = [x, *block.parameters()]
    return lambda: torch.autograd.grad(block(x), inputs, seed), block(x).double().square().sum().item()


def timed(run, seconds=0.5):
    """(wall time, CPU time) of a call in ms: the mean over `seconds`, after one warm-up call."""
    run()
    count, wall, cpu = 0, time.perf_counter(), time.process_time()
    while count == 0 or time.perf_counter() - wall < seconds:
        run()
        count += 1
    return 1e3 * (time.perf_counter() - wall) / count, 1e3 * (time.process_time() - cpu) / count


def ops_benchmark(threads):
    """{name: (wall time, CPU time, sum of squares of the output)} of one run."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([str(OPS_BENCHMARK), f"--threads={threads}", "--benchmark_filter=moe_block|grouped_", "--benchmark_min_time=0.5",
                        f"--benchmark_out={out.name}", "--benchmark_out_format=json"], stdout=subprocess.DEVNULL, check=True, timeout=600)
        found = json.load(out)["benchmarks"]
    return {"/".join(one["name"].split("/")[:2]): (one["real_time"], one["cpu_time"], one["sum_of_squares"]) for one in found}


def measure(threads, rounds):
    """{name: [(wall time, CPU time) of each round]}."""
    torch.set_num_threads(threads)
    theirs = {f"{implementation}/{name}": block_of_transformers(name, implementation)
              for name in BLOCKS for implementation in ("eager", "grouped_mm")}
    found = {}
    for _ in range(rounds):
        for name, (wall, cpu, squares) in ops_benchmark(threads).items():
            found.setdefault(name, []).append((wall, cpu))
            if "moe_block" in name:  # the same computation, or there is nothing to compare
                expected = theirs["eager/" + name.split("/")[1]][1]
                if abs(squares / expected - 1) > (1e-3 if "bf16" in name else 1e-5):
                    raise RuntimeError(f"{name} gives another output than transformers: {squares} against {expected}")
        for name, (run, _) in theirs.items():
            found.setdefault(name, []).append(timed(run))
    return found


def median(found, name, i):
    return statistics.median(times[i] for times in found[name])


def ratio(found, other, own):
    wall, cpu = (median(found, other, i) / median(found, own, i) for i in (0, 1))
    return f"{wall:.2f} ({cpu:.2f})"


def rows(results, cases, sides):
    """Rows of the table. `cases`: a text for each; `sides`: Titan's first."""
    for name, what in cases.items():
        for threads, found in results.items():
            names = [f"{side}/{name}" for side in sides]
            yield " | ".join([f"| {what}", str(threads), *(f"{median(found, side, 0):,.1f}" for side in names),
                              *(ratio(found, side, names[0]) for side in names[1:])]) + " |"


def table(results):
    blocks = {name: f"{used} of {experts} experts of {hidden}, width {DIM}, {tokens:,} tokens, {'fp32' if dtype is torch.float32 else 'bf16'}"
              for name, (experts, used, hidden, tokens, dtype) in BLOCKS.items()}
    return ["| block, forward and backward | threads | Titan ms | transformers, loop | its grouped products | loop / Titan | grouped / Titan |",
            "|---|---:|---:|---:|---:|---:|---:|", *rows(results, blocks, ("titan", "eager", "grouped_mm")), "",
            "| three products of one matrix | threads | Titan ms | a product of ATen's per expert | loop / Titan |",
            "|---|---:|---:|---:|---:|", *rows(results, GROUPED, ("titan", "aten"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="fill in the table of this note")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    lines = table({threads: measure(threads, options.rounds) for threads in options.threads})
    lines = [f"Medians of {options.rounds} rounds, ratios of CPU time in brackets; {load:.1f} processes wanted one of "
             f"{os.cpu_count()} CPUs when they began.", "", *lines]
    print("\n".join(lines))
    if options.write:
        write(options.write, "compared with transformers", lines)


if __name__ == "__main__":
    main()
