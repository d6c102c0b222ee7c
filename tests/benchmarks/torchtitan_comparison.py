"""Trains the debug model in torchtitan v0.2.2's own model code and in Titan, in turns on one machine.

  python -m venv --system-site-packages bench && bench/bin/pip install torchtitan==0.2.2   # beside torch 2.11.0
  bench/bin/python tests/benchmarks/torchtitan_comparison.py [--rounds 3] [--steps 8] [--write docs/benchmarks_torchtitan.md]

torchtitan runs eagerly, fp32, fused AdamW, clipping at 1, random tokens; its trainer wants a GPU, so its model is driven
directly. Each side runs in a process of its own.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys

from train_benchmark import ROOT, train

TORCHTITAN = """
import resource, sys, time, torch
steps, threads = map(int, sys.argv[1:])
torch.set_num_threads(threads)
from torchtitan.models.llama3 import llama3_args
from torchtitan.models.llama3.model.model import Transformer
arguments = llama3_args["debugmodel"]
arguments.max_seq_len = 2048
model = Transformer(arguments)
with torch.no_grad():
    model.init_weights()
optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
tokens = torch.randint(0, 2048, (2, 2049))
times = []
for _ in range(steps):
    start = time.perf_counter()
    optimizer.zero_grad()
    logits = model(tokens[:, :-1]).flatten(0, 1).float()
    loss = torch.nn.functional.cross_entropy(logits, tokens[:, 1:].flatten(), reduction="sum") / 4096
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
    times.append(time.perf_counter() - start)
later = sorted(times[2:])
print(4096 / later[len(later) // 2], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def torchtitan(steps: int, threads: int) -> tuple[float, float]:
    """Tokens per second (median, first two steps left out) and peak memory in GiB."""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", TORCHTITAN, str(steps), str(threads)],
                         stdout=subprocess.PIPE, text=True, check=True)
    tokens_per_second, peak = run.stdout.split()[-2:]
    return float(tokens_per_second), float(peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--titan", type=pathlib.Path, default=ROOT / "build/release/bin/titan")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", type=pathlib.Path, help="a Markdown file to put the figures into")
    arguments = parser.parse_args()

    table = ["| round | torchtitan v0.2.2, tokens/s | Titan, tokens/s | ratio | torchtitan, peak GiB | Titan, peak GiB |",
             "|---|---|---|---|---|---|"]
    ratios = []
    for number in range(1, arguments.rounds + 1):
        theirs, their_peak = torchtitan(arguments.steps, arguments.threads)
        ours = train(arguments.titan, arguments.steps, arguments.threads)
        ratios.append(ours["tokens_per_second"] / theirs)
        table.append(f"| {number} | {theirs:,.0f} | {ours['tokens_per_second']:,.0f} | {ratios[-1]:.2f} | "
                     f"{their_peak:.2f} | {ours['peak_gib']:.2f} |")
        print(table[-1], flush=True)
    table.append(f"| median | | | {statistics.median(ratios):.2f} | | |")
    if arguments.write:
        text = ("# Beside torchtitan v0.2.2\n\nDebug model, fp32, batch 2 x 2,048 tokens, "
                f"{arguments.threads} CPU threads, torch 2.11.0, in turns on one machine. Made by\n\n"
                f"    tests/benchmarks/torchtitan_comparison.py --rounds {arguments.rounds} --steps {arguments.steps} "
                f"--write {arguments.write}\n\n(the script says what it needs)\n\n")
        arguments.write.write_text(text + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
