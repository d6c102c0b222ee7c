#!/usr/bin/env python3
"""Bubble and activations of every pipeline schedule: the formula of its paper compared with a simulation of its table.

Rewrites the table between two marks of the document. Fails when a simulation is worse than
its formula. `--measure` does the same for steps of the real executor on 4 ranks, and fails when they do not follow the
simulated order; `--count` does it for the memory of simulated ranks.

    python3 tests/benchmarks/pipeline_schedules.py                                       # prints the table
    python3 tests/benchmarks/pipeline_schedules.py --write docs/guides/pipeline_schedules.md
    python3 tests/benchmarks/pipeline_schedules.py --measure --write docs/guides/pipeline_schedules.md
    python3 tests/benchmarks/pipeline_schedules.py --count --write docs/guides/pipeline_schedules.md
"""

import argparse
import fractions
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = pathlib.Path(os.environ.get("TITAN_PROGRAM", ROOT / "build/release/bin/titan"))
MILLISECONDS, MICROBATCHES = 20, 8  # of one layer and pass; of a measured step
# 30 blocks of the 8B model in 4 pipeline ranks; a small vocabulary, so that the first and last rank do not
# differ much
COUNTED = """--model.name llama3 --model.flavor 8B --model.n_layers 30 --model.vocab_size 2048 --model.hf_assets_path tests/assets/tokenizer
    --training.dataset c4_test --training.seq_len 2048 --training.local_batch_size 8 --training.mixed_precision_param float32
    --activation_checkpoint.mode none --comm.mode fake_backend --world-size 4 --parallelism.pipeline_parallel_degree 4""".split()
SHAPES = ((2, 4), (4, 8), (4, 16), (8, 32))
COSTS = ((1, 1, 1), (2, 3, 1))
# name: stages per rank; idle time and kept activations in units of one rank's share of one microbatch, P ranks, M microbatches
SCHEDULES = {
    "GPipe": ((1,), lambda P, v, f, b, w: (P - 1) * (f + b + w), lambda P, v, M: M),
    "1F1B": ((1,), lambda P, v, f, b, w: (P - 1) * (f + b + w), lambda P, v, M: P),
    "Interleaved1F1B": ((2, 3), lambda P, v, f, b, w: (P - 1) * (f + b + w) / v, lambda P, v, M: P + fractions.Fraction(P - 1, v)),
    "LoopedBFS": ((2, 3), lambda P, v, f, b, w: (P - 1) * (f + b + w) / v, lambda P, v, M: M),
    "InterleavedZeroBubble": ((2, 3), lambda P, v, f, b, w: (P - 1) * (f + b - w) / v, lambda P, v, M: P),
    # where the three take the same time; the paper gives no formula for others
    "ZBVZeroBubble": ((2,), lambda P, v, f, b, w: 0 * f if f == b == w else None, lambda P, v, M: P),
    "DualPipeV": ((2,), lambda P, v, f, b, w: (P - 1) * (f + 2 * (b + w) - 3 * w) / v, lambda P, v, M: P + fractions.Fraction(1, 2)),
}


def describe(name, ranks, stages, microbatches, costs):
    """Length of the step, and each rank's busy time, idle time within the step and peak of activations, as the command prints them."""
    words = [str(TITAN), "describe", "pipeline_schedule", name, "--ranks", str(ranks), "--stages", str(stages), "--microbatches",
             str(microbatches), "--costs", ",".join(str(cost) for cost in costs)]
    text = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout
    step = fractions.Fraction(re.search(r"^step ([\d.e+-]+), mean bubble", text, re.M)[1])
    table = [re.split(r"\s{2,}", line) for line in text.partition("peak until I\n")[2].splitlines()]
    assert len(table) == ranks, text
    return step, [(fractions.Fraction(row[2]), fractions.Fraction(row[4]), int(row[5])) for row in table]


def shown(number):
    return "–" if number is None else f"{float(number):.4g}"


def rows():
    worse = []
    for name, (per_rank, idle_formula, kept_formula) in SCHEDULES.items():
        for v in per_rank:
            for ranks, microbatches in SHAPES:
                for costs in COSTS:
                    step, uses = describe(name, ranks, ranks * v, microbatches, costs)
                    # costs are those of one stage; the unit of the table is a rank's share
                    f, b, w = (fractions.Fraction(cost) * v for cost in costs)
                    formula, kept = idle_formula(ranks, v, f, b, w), kept_formula(ranks, v, microbatches)
                    inside = max(idle for _, idle, _ in uses)
                    simulated_kept = fractions.Fraction(max(peak for _, _, peak in uses), v)
                    cells = (name, ranks, v, microbatches, ", ".join(map(str, costs)), shown(formula), shown(inside),
                             shown(step - uses[0][0]), f"{float(1 - uses[0][0] / step):.1%}", shown(kept), shown(simulated_kept))
                    yield "| " + " | ".join(str(cell) for cell in cells) + " |"
                    if (formula is not None and inside > formula) or simulated_kept > kept:
                        worse.append(cells)
    if worse:
        sys.exit(f"worse than the formula: {worse}")


def simulated():
    head = ["| schedule | P | v | M | F, I, W | idle by formula | idle inside | idle in the step | bubble | kept by formula | kept |",
            "|---|---|---|---|---|---|---|---|---|---|---|"]
    return "\n".join(head + list(rows())) + "\n"


def measured():
    done = subprocess.run([TITAN.parent / "pipeline_steps", str(MILLISECONDS), str(MICROBATCHES)], check=True, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=300)
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    for a, b in itertools.permutations(steps, 2):  # where the simulation predicts a difference of a twentieth or more
        if a["predicted"] < 0.95 * b["predicted"] and a["measured"] > b["measured"]:
            sys.exit(f"{a['schedule']} should be faster than {b['schedule']}: {a['measured']} and {b['measured']} s")
    lines = ["| schedule | stages | simulated, ms | measured, ms | measured / simulated | bubble, simulated | bubble, measured |",
             "|---|---|---|---|---|---|---|"]
    for step in sorted(steps, key=lambda step: step["predicted"]):
        busy = step["predicted"] * (1 - step["bubble"])
        lines.append(f"| {step['schedule']} | {step['stages']} | {step['predicted'] * 1e3:.0f} | {step['measured'] * 1e3:.0f} | "
                     f"{step['measured'] / step['predicted']:.3f} | {step['bubble']:.1%} | {1 - busy / step['measured']:.1%} |")
    return "\n".join(lines) + "\n"


def played(name, rank):
    """Peak bytes of activations and temporaries on a simulated rank of 4, in addition to weights, gradients and states."""
    words = [str(TITAN), "train", *COUNTED, "--rank", str(rank), "--parallelism.pipeline_parallel_schedule", name]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT, timeout=120)
    held = {key: int(number) for key, number in re.findall(r"^  (\w[\w, ]*?)  +[\d.]+ GiB +(\d+) bytes$", done.stdout + done.stderr, re.M)}
    return held["most at once, with activations"] - held["together"]


def counted():
    lines = ["| schedule | kept, simulated: rank 0, 1, 2, 3 | GiB, counted: rank 0, 1, 2, 3 |", "|---|---|---|"]
    for name, (per_rank, _, _) in SCHEDULES.items():
        v = per_rank[0]
        uses = describe(name, 4, 4 * v, MICROBATCHES, (1, 1, 1))[1]
        kept = ", ".join(shown(fractions.Fraction(peak, v)) for _, _, peak in uses)
        lines.append(f"| {name} | {kept} | {', '.join(f'{played(name, rank) / 2**30:.1f}' for rank in range(4))} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", action="store_true", help="the executor's step times instead of the simulation")
    parser.add_argument("--count", action="store_true", help="the memory of simulated ranks instead")
    parser.add_argument("--write", type=pathlib.Path, help="the document whose table is rewritten")
    arguments = parser.parse_args()
    name = "measured" if arguments.measure else "counted" if arguments.count else "simulated"
    table = {"measured": measured, "counted": counted, "simulated": simulated}[name]()
    if not arguments.write:
        print(table, end="")
        return
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, mark, rest = arguments.write.read_text().partition(begin)
    after = rest.partition(end)
    assert mark and after[1], f"{arguments.write} has no marks {begin!r} and {end!r}"
    arguments.write.write_text(before + begin + table + end + after[2])


if __name__ == "__main__":
    main()
