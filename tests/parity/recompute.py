#!/usr/bin/env python3
"""Activation checkpointing under every layout of the parity ladder: losses and gradient norms of each step equal those
of the same layout without it, bit for bit (float32, deterministic).

    python3 tests/parity/recompute.py               # a selection of layouts, two modes each; exit code 1 when one differs
    python3 tests/parity/recompute.py --full        # every layout, every mode
    python3 tests/parity/recompute.py --only "TP 2" # layouts whose name contains the text, every mode

ctest sets TITAN_SOURCE_DIR, TITAN_PROGRAM and TITAN_WORK.
"""

import argparse
import concurrent.futures
import dataclasses
import subprocess
import sys
import time

import ladder
import layouts

STEPS = 3
MODES = {
    "full": {"activation_checkpoint.mode": "full"},
    "full, early stop": {"activation_checkpoint.mode": "full", "activation_checkpoint.early_stop": None},
    "every second block": {"activation_checkpoint.mode": "selective"},
    "op": {"activation_checkpoint.mode": "selective", "activation_checkpoint.selective_ac_option": "op"},
    "op, early stop": {"activation_checkpoint.mode": "selective", "activation_checkpoint.selective_ac_option": "op",
                       "activation_checkpoint.early_stop": None},
    "memory budget": {"activation_checkpoint.mode": "memory_budget", "activation_checkpoint.memory_budget": 0.6},
    "offload": {"activation_checkpoint.mode": "offload", "activation_checkpoint.min_bytes": 1},
}
NONE = {"activation_checkpoint.mode": "none"}
# one layout of each parallelism and of each variant, and combinations
SELECTED = ("FSDP 2", "DDP 2", "TP 2", "TP 2, async", "TP 2, sequence parallel off", "PP 2, 1F1B",
            "PP 2, InterleavedZeroBubble", "PP 2, ZBVZeroBubble", "CP 2, alltoall, headtail", "CP 2, allgather, headtail", "FSDP 2 x TP 2")


# DualPipeV overlaps the communication of experts only without recomputation
NO_OVERLAP = {"parallelism.no_pipeline_parallel_expert_parallel_overlap": None}


def with_mode(rung, mode):
    overlaps = rung.experts > 1 and "DualPipeV" in rung.more.values()
    more = {**rung.more, **(MODES[mode] if mode else NONE), **(NO_OVERLAP if overlaps else {})}
    return dataclasses.replace(rung, name=f"{rung.name}, {mode or 'none'}", more=more)


def compare(rung, modes):
    """Differences, as lines."""
    model = rung.models[0]
    try:
        plain = ladder.run(with_mode(rung, None), model, "float32", STEPS)
        lines = []
        for mode in modes:
            again = ladder.run(with_mode(rung, mode), model, "float32", STEPS)
            if (again.losses, again.norms) != (plain.losses, plain.norms):
                lines.append(f"{rung.name}, {mode}: losses {again.losses}, norms {again.norms}; "
                             f"without: {plain.losses}, {plain.norms}")
        return lines
    except (RuntimeError, AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        return [f"{rung.name}: {error}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", metavar="TEXT", default="")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="layouts at a time")
    arguments = parser.parse_args()
    start = time.monotonic()
    ladder.WORK.mkdir(parents=True, exist_ok=True)
    layouts.prepare(ladder.WORK, ladder.ROOT / "tests/assets/corpus/train.jsonl")
    rungs = [rung for rung in layouts.RUNGS if arguments.only in rung.name and rung.ranks <= 8
             and (arguments.full or arguments.only or rung.name in SELECTED)]
    names = list(MODES)
    plans = [(rung, names if arguments.full or arguments.only else
              [names[(2 * number + shift) % len(names)] for shift in range(2)]) for number, rung in enumerate(rungs)]
    problems, runs = [], 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for (rung, modes), wrong in zip(plans, pool.map(lambda plan: compare(*plan), plans)):
            print(f"{rung.name:50} {' | '.join(modes)}: {'; '.join(wrong) or 'equal'}", flush=True)
            problems += wrong
            runs += len(modes)
    print(f"{runs} runs of {len(rungs)} layouts compared, {len(problems)} problems, {time.monotonic() - start:.0f} s")
    missing = set(SELECTED) - {rung.name for rung in layouts.RUNGS}
    if missing:
        print("FAILED", "no such layouts:", *sorted(missing))
    return 1 if problems or missing or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
