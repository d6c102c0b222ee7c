"""Compares the logits processed by sdk/src/generation/sampler with transformers' logits processors, bit for bit.

    sampling_referee.py --probe <sampling_probe>

Each processor alone, then all of them together in the order in which transformers' generate applies them, on random
logits: normal ones, steep ones, ones with many ties, and ones with most tokens already excluded.
"""

import argparse
import json
import random
import subprocess
import sys

import torch
from transformers.generation.logits_process import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                                                    TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

PLAIN = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
ALONE = {  # with temperature 1: transformers applies it only when sampling
    "temperature": lambda rng: {"temperature": rng.choice([0.1, 0.7, 1.3, 2.5, rng.uniform(0.05, 4)])},
    "top_k": lambda rng: {"temperature": 1.0, "top_k": rng.choice([1, 2, 50, 5000, rng.randint(1, 2000)])},
    "top_p": lambda rng: {"temperature": 1.0, "top_p": rng.choice([0.01, 0.5, 0.9, 0.999, rng.uniform(0.01, 0.99)])},
    "min_p": lambda rng: {"temperature": 1.0, "min_p": rng.choice([0.01, 0.1, 0.5, 0.99, rng.uniform(0.01, 0.9)])},
    "repetition_penalty": lambda rng: {"repetition_penalty": rng.choice([0.5, 1.1, 1.3, rng.uniform(0.3, 3)])},
}


def draw_logits(rng, generator):
    size = rng.choice([1, 2, 7, 100, 2048, rng.randint(1, 3000)])
    logits = torch.randn(size, generator=generator) * rng.choice([0.01, 1.0, 4.0, 20.0])
    shape = rng.choice(["normal", "ties", "ruled out"])
    if shape == "ties":
        logits = logits.round()
    if shape == "ruled out":
        logits[torch.rand(size, generator=generator) < 0.7] = -float("inf")
        logits[rng.randrange(size)] = 0.0
    return logits


def processors(options):
    listed = LogitsProcessorList()
    if options["repetition_penalty"] != 1:
        listed.append(RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
    if options["temperature"]:
        listed.append(TemperatureLogitsWarper(options["temperature"]))
    if options["top_k"]:
        listed.append(TopKLogitsWarper(options["top_k"]))
    if options["top_p"] < 1:
        listed.append(TopPLogitsWarper(options["top_p"]))
    if options["min_p"]:
        listed.append(MinPLogitsWarper(options["min_p"]))
    return listed


def bits(logits):
    return logits.view(torch.int32).tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--cases", type=int, default=60, help="cases of each processor, and twice as many with all together")
    arguments = parser.parse_args()

    rng, generator = random.Random(0), torch.Generator().manual_seed(0)
    named = [(name, PLAIN | make(rng)) for name, make in ALONE.items() for _ in range(arguments.cases)]
    for _ in range(2 * arguments.cases):
        options = dict(PLAIN)
        for make in ALONE.values():
            options |= make(rng)
        named.append(("all", options | {"temperature": rng.uniform(0.3, 2)}))
    drawn = [draw_logits(rng, generator) for _ in named]
    seen = [[rng.randrange(len(logits)) for _ in range(rng.choice([1, 5, 40]))] for logits in drawn]
    tests = [{"logits": bits(logits), "seen": ids, "options": options} for (_, options), logits, ids in zip(named, drawn, seen)]
    run = subprocess.run([arguments.probe], input=json.dumps(tests), capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"the probe failed: {run.stderr}")
    results = json.loads(run.stdout)
    assert len(results) == len(tests)

    changed = dict.fromkeys([*ALONE, "all"], 0)
    for (name, options), logits, ids, got in zip(named, drawn, seen, results):
        wanted = processors(options)(torch.tensor([ids]), logits[None].clone())[0]
        if got != bits(wanted):
            found = torch.tensor(got, dtype=torch.int32).view(torch.float32)
            place = next(i for i, (a, b) in enumerate(zip(got, bits(wanted))) if a != b)
            sys.exit(f"{name} {options}: logit {place} of {len(logits)}, {logits[place]}: titan {found[place]}, "
                     f"transformers {wanted[place]}")
        changed[name] += got != bits(logits)
    for name, count in changed.items():
        if count < arguments.cases // 4:
            sys.exit(f"{name} changed only {count} of its logits: the cases do not show what it does")
    print(f"{len(tests)} cases equal to the bit; that changed logits: {changed}")


if __name__ == "__main__":
    main()
