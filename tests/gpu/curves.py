"""Compares loss curves with the first of them, step by step.

    python3 tests/gpu/curves.py A.jsonl B.jsonl... [--limit 1e-4] [--steps 10]

A curve is a file of JSON lines: Titan's metrics.jsonl (`step`, `loss_metrics/global_avg_loss`), or {"step", "loss"}
from torchtitan_side.py --loss-log. Prints one JSON value. Exit code 1: a loss is not finite, curves have no step in
common or, with --limit, a loss differs by more. --steps compares the first N common steps only.

`stage` is a stage of run_all.py: the debug model by Titan and by torchtitan v0.2.2 from the same weights, on the same
tokens.
"""

import argparse
import importlib.util
import json
import math
import random
import shutil
import struct
import sys

TAGS = ("loss", "loss_metrics/global_avg_loss")


def read(path):
    """{step: loss}; a line without a step or a loss, or cut short, is left out."""
    losses = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        try:
            record = json.loads(line)
            loss = next(record[tag] for tag in TAGS if tag in record)
            losses[int(record["step"])] = float(loss)
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
            continue
    return losses


def compare(first, other, most_steps):
    steps = sorted(set(first) & set(other))[:most_steps]
    if not steps:
        return {"steps": 0}
    finite = all(math.isfinite(curve[step]) for curve in (first, other) for step in steps)
    found = {"steps": len(steps), "finite": finite, "first_losses": [first[steps[0]], other[steps[0]]],
             "last_losses": [first[steps[-1]], other[steps[-1]]]}
    if finite:
        differences = {step: abs(first[step] - other[step]) for step in steps}
        found |= {"largest": max(differences.values()), "at_step": max(differences, key=differences.get),
                  "mean": sum(differences.values()) / len(steps)}
    else:
        found["last_losses"] = [str(loss) for loss in found["last_losses"]]
        found["first_losses"] = [str(loss) for loss in found["first_losses"]]
    return found


SEQ_LEN, ROWS, STEPS = 128, 2, 20
TOKENS = ("--training.dataset", "tokens", "--dataset.tokens.format", "raw", "--dataset.tokens.dtype", "int32",
          "--dataset.tokens.chunk_tokens", SEQ_LEN + 1, "--training.seq_len", SEQ_LEN, "--training.local_batch_size", ROWS)
BF16 = ("--training.mixed_precision_param", "bfloat16")
# Name: flags of Titan, of torchtitan_side.py, largest difference of a loss. On CPUs: fp32 1.4e-6, bf16 2.9e-4, float8
# 8e-3.
JOBS = {
    "fp32": ((), ("--dtype", "float32"), 1e-3),
    "bf16": (BF16, ("--layout", "fsdp"), 2e-2),
    "bf16, torchtitan under autocast": (BF16, (), 4e-2),
    "float8 tensorwise": ((*BF16, "--model.converters", "quantize.linear.float8"),
                          ("--layout", "fsdp", "--float8", "tensorwise"), 1e-1),
}


def write_tokens(path, rows, vocabulary):
    """Rows of SEQ_LEN + 1 ids that a model can learn: quadratic walks with noise."""
    numbers = random.Random(1)
    with open(path, "wb") as file:
        for _ in range(rows):
            start, stride = numbers.randrange(vocabulary), numbers.randrange(1, 8)
            ids = [(start + stride * at * at + numbers.randrange(3)) % vocabulary for at in range(SEQ_LEN + 1)]
            file.write(struct.pack(f"<{SEQ_LEN + 1}i", *ids))


def stage(c):
    """`c`: Context of running.py."""
    from running import check, ran, row, within  # pylint: disable=import-outside-toplevel
    wheels = c.root / "wheels"
    if not wheels.is_dir() and importlib.util.find_spec("torchtitan") is None:
        check("torchtitan's curves are left out where the bundle has no wheels", True)
        return
    folder = c.fresh("curves")
    tokens, weights = folder / "tokens.bin", folder / "hf"
    write_tokens(tokens, 24, 2048)  # 2048: the debug model's vocabulary
    # both sides read the weights from the folder, so the device that drew them does not matter
    seed = c.train("curves_seed", "--checkpoint.enable", "--checkpoint.create_seed_checkpoint", device="cpu")
    convert = ran("a seed checkpoint", seed) and c.run("titan", "convert", "to-hf", seed.folder / "checkpoint/step-0", weights)
    if not convert or not ran("titan convert to-hf", convert):
        return
    jobs = {"fp32": JOBS["fp32"]} if c.is_small else JOBS

    def by_titan(name):
        return c.train(f"curves_titan_{name}", *TOKENS, "--training.dataset_path", tokens, "--checkpoint.enable",
                       "--checkpoint.load_only", "--checkpoint.initial_load_path", weights, "--checkpoint.initial_load_in_hf",
                       *jobs[name][0], steps=STEPS)

    def by_torchtitan(name):
        return c.run(sys.executable, c.root / "tests/gpu/torchtitan_side.py", "--device", c.device, "--wheels", wheels,
                     "--flavor", "debugmodel", "--seq-len", SEQ_LEN, "--batch", ROWS, "--warmup", 1, "--steps", STEPS - 1,
                     "--tokens", tokens, "--init", weights, "--loss-log", folder / f"{name}.jsonl", "--threads", 1,
                     *jobs[name][1])

    titan = {name: by_titan(name) for name in jobs}
    theirs = c.side_by_side({name: lambda name=name: by_torchtitan(name) for name in jobs}, workers=4)
    for name, (_, _, limit) in jobs.items():
        if not (ran(f"curve {name} by Titan", titan[name]) and ran(f"curve {name} by torchtitan", theirs[name])):
            continue
        files = [c.out / f"curve_{side}_{name.replace(' ', '_').replace(',', '')}.jsonl" for side in ("titan", "torchtitan")]
        shutil.copy(titan[name].folder / "metrics.jsonl", files[0])
        shutil.copy(folder / f"{name}.jsonl", files[1])
        found = compare(read(files[0]), read(files[1]), STEPS)
        check(f"curves {name}: steps", found["steps"] == STEPS, found["steps"], STEPS)
        within(f"curves {name}: largest difference of a loss from torchtitan's", found.get("largest"), limit)
        row("curves", job=name, **found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", nargs="+", metavar="FILE")
    parser.add_argument("--limit", type=float, help="largest absolute difference of a loss")
    parser.add_argument("--steps", type=int, help="compare this many steps")
    arguments = parser.parse_args()
    if len(arguments.curves) < 2:
        parser.error("two curves or more are needed")
    first = read(arguments.curves[0])
    pairs = [{"file": path, **compare(first, read(path), arguments.steps)} for path in arguments.curves[1:]]
    good = all(pair.get("finite") and (arguments.limit is None or pair["largest"] <= arguments.limit) for pair in pairs)
    print(json.dumps({"reference": arguments.curves[0], "limit": arguments.limit, "ok": good, "pairs": pairs}))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
