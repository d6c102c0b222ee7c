#!/usr/bin/env python3
"""The parity ladder: one model trained under every layout, against one rank.

Judged: hashes of all initial weights and of each step's tokens are equal; in float64 the losses and gradient norms of
20 steps agree within 1e-9 relative; in float32 those of the first 5 steps within 1e-5 (later ones are shown only:
rounding grows from step to step).

    python3 tests/parity/ladder.py                        # runs and judges; exit code 1 when a rung fails
    python3 tests/parity/ladder.py --write docs/parity.md # and writes the table
    python3 tests/parity/ladder.py --only "TP 2"          # rungs whose name contains the text

ctest sets TITAN_SOURCE_DIR, TITAN_PROGRAM and TITAN_WORK.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
WORK = pathlib.Path(os.environ.get("TITAN_WORK", ROOT / "build/release/tests/work")) / "parity"

STEPS = 20
GLOBAL_BATCH = 8
LOSS, NORM = "loss_metrics/global_avg_loss", "grad_norm"
LIMITS = {"float64": (20, 1e-9), "float32": (5, 1e-5)}  # dtype: judged steps, largest relative difference

BASE = {
    "job.config_file": "train_configs/debug_model.toml",
    "metrics.no_enable_tensorboard": None,
    "metrics.loggers": "jsonl",
    "training.seq_len": 64,
    "training.steps": STEPS,
    "training.global_batch_size": GLOBAL_BATCH,
    "lr_scheduler.warmup_steps": 2,
    "debug.deterministic": None,
    "debug.fingerprints": None,
}
MODELS = {
    "plain": {"model.dim": 64, "model.n_layers": 2, "model.n_heads": 8, "model.n_kv_heads": 4},
    # head and embedding share one weight
    "tied": {"model.dim": 64, "model.n_layers": 2, "model.n_heads": 8, "model.n_kv_heads": 4,
             "model.enable_weight_tying": None},
    # neither the vocabulary nor the hidden size of the feed-forward layer nor dim divides by the ranks
    "uneven": {"model.dim": 70, "model.n_layers": 2, "model.n_heads": 4, "model.n_kv_heads": 4, "model.head_dim": 18,
               "model.vocab_size": 2051, "model.multiple_of": 1, "model.ffn_dim_multiplier": 1.3},
}


@dataclasses.dataclass
class Rung:
    name: str
    ranks: int = 1
    replicate: int = 1
    shard: int = 1
    tensor: int = 1
    accumulate: int = 1
    more: dict = dataclasses.field(default_factory=dict)

    def options(self):
        data_parallel = self.replicate * self.shard
        return {
            "parallelism.data_parallel_replicate_degree": self.replicate,
            "parallelism.data_parallel_shard_degree": self.shard,
            "parallelism.tensor_parallel_degree": self.tensor,
            "training.local_batch_size": GLOBAL_BATCH // data_parallel // self.accumulate,
            **self.more,
        }


NO_LOSS_PARALLEL = {"parallelism.disable_loss_parallel": None}
NO_SEQUENCE_PARALLEL = {"parallelism.tensor.no_sequence_parallel": None}
ASYNC = {"parallelism.enable_async_tensor_parallel": None}


def tensor_rungs(ranks):
    name = f"TP {ranks}"
    variants = [
        ("", {}),
        (", loss parallel off", NO_LOSS_PARALLEL),
        (", async", ASYNC),
        (", async, loss parallel off", {**ASYNC, **NO_LOSS_PARALLEL}),
        (", sequence parallel off", NO_SEQUENCE_PARALLEL),
        (", sequence and loss parallel off", {**NO_SEQUENCE_PARALLEL, **NO_LOSS_PARALLEL}),
    ]
    return [Rung(name + text, ranks, tensor=ranks, more=more) for text, more in variants]


def reshard(policy):
    return {"parallelism.fsdp_reshard_after_forward": policy}


RUNGS = [
    Rung("1 rank, accumulation 4", accumulate=4),
    Rung("DDP 2", 2, replicate=2),
    Rung("DDP 4", 4, replicate=4),
    Rung("DDP 2, accumulation 2", 2, replicate=2, accumulate=2),
    Rung("FSDP 2", 2, shard=2),
    Rung("FSDP 4", 4, shard=4),
    Rung("FSDP 2, reshard never", 2, shard=2, more=reshard("never")),
    Rung("FSDP 2, reshard always", 2, shard=2, more=reshard("always")),
    Rung("FSDP 2, accumulation 2", 2, shard=2, accumulate=2),
    Rung("FSDP 2, accumulation 2, summed each time", 2, shard=2, accumulate=2,
         more={"parallelism.fsdp.sum_each_microbatch": None}),
    Rung("FSDP 2, offload", 2, shard=2, more={"training.enable_cpu_offload": None}),
    Rung("HSDP 2x2", 4, replicate=2, shard=2),
    Rung("HSDP 2x2, accumulation 2", 4, replicate=2, shard=2, accumulate=2),
    *tensor_rungs(2),
    *tensor_rungs(4),
    Rung("FSDP 2 x TP 2", 4, shard=2, tensor=2),
    Rung("FSDP 2 x TP 2, accumulation 2", 4, shard=2, tensor=2, accumulate=2),
    Rung("FSDP 2 x TP 2, async", 4, shard=2, tensor=2, more=ASYNC),
    Rung("DDP 2 x TP 2", 4, replicate=2, tensor=2),
]


@dataclasses.dataclass
class Result:
    losses: list
    norms: list
    fingerprints: list
    sent: float  # MiB per step of rank 0


def command(rung, model, dtype, folder):
    flags = []
    for key, value in {**BASE, **MODELS[model], **rung.options(), "training.dtype": dtype,
                       "job.dump_folder": folder}.items():
        flags += [f"--{key}"] if value is None else [f"--{key}", str(value)]
    train = ["train", *flags]
    return train if rung.ranks == 1 else ["launch", "--nproc", str(rung.ranks), "--log-dir", f"{folder}/logs", "--",
                                          *train]


def run(rung, model, dtype):
    folder = WORK / f"{rung.name}-{model}-{dtype}".replace(" ", "_").replace(",", "")
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run([TITAN, *command(rung, model, dtype, str(folder))], cwd=ROOT, stdin=subprocess.DEVNULL,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{rung.name}, {model}, {dtype}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    fingerprints = (folder / "fingerprints.jsonl").read_text().splitlines()
    result = Result([line[LOSS] for line in lines], [line[NORM] for line in lines], fingerprints,
                    lines[-1].get("comm_metrics/sent_per_step(MiB)", 0.0))
    assert len(result.losses) == STEPS, f"{rung.name}: {len(result.losses)} of {STEPS} steps were logged"
    assert len(fingerprints) > STEPS, f"{rung.name}: no fingerprints"
    shutil.rmtree(folder, ignore_errors=True)
    return result


def difference(values, reference, steps):
    return max(abs(a - b) / abs(b) for a, b in zip(values[:steps], reference[:steps], strict=True))


def judge(rung, model, dtype, result, reference):
    """One row of the table, and what is wrong with it."""
    steps, limit = LIMITS[dtype]
    loss, norm = (difference(getattr(result, name), getattr(reference, name), steps) for name in ("losses", "norms"))
    last = difference(result.losses, reference.losses, STEPS)
    problems = []
    if result.fingerprints != reference.fingerprints:
        differing = [a for a, b in zip(result.fingerprints, reference.fingerprints) if a != b]
        problems.append(f"fingerprints differ: {differing[:3]}")
    if not (loss <= limit and norm <= limit):
        problems.append(f"loss differs by {loss:.1e}, norm by {norm:.1e}, limit {limit:.0e}")
    row = {"rung": rung.name, "ranks": rung.ranks, "model": model, "dtype": dtype, "loss": loss, "norm": norm,
           "last": last, "sent": result.sent, "equal": result.fingerprints == reference.fingerprints}
    return row, [f"{rung.name}, {model}, {dtype}: {problem}" for problem in problems]


def table(rows):
    """Markdown: per rung one line, the models side by side."""
    by_rung = {}
    for row in rows:
        by_rung.setdefault((row["rung"], row["ranks"]), {})[row["model"], row["dtype"]] = row
    models = list(MODELS)
    lines = ["| layout | ranks | weights and tokens | " + " | ".join(
        f"{model}: fp64 loss, norm; fp32 loss" for model in models) + " | sent by rank 0, MiB per step |",
        "|---|---|---|" + "---|" * (len(models) + 1)]
    for (rung, ranks), cells in by_rung.items():
        texts = []
        for model in models:
            wide, narrow = cells.get((model, "float64")), cells.get((model, "float32"))
            texts.append("–" if not wide else f"{wide['loss']:.0e}, {wide['norm']:.0e}; " + (
                f"{narrow['loss']:.0e}" if narrow else "–"))
        equal = "equal" if all(cell["equal"] for cell in cells.values()) else "DIFFERENT"
        sent = cells.get(("plain", "float32"), next(iter(cells.values())))["sent"]
        lines.append(f"| {rung} | {ranks} | {equal} | " + " | ".join(texts) + f" | {sent:.2f} |")
    return "\n".join(lines)


def document(rows, seconds):
    worst = {dtype: max(max(row["loss"], row["norm"]) for row in rows if row["dtype"] == dtype) for dtype in LIMITS}
    later = max(row["last"] for row in rows if row["dtype"] == "float32")
    return f"""# The parity ladder

The same job under every layout gives the same training run. Each line is one layout on CPU ranks over gloo, compared
with one rank; figures are the largest relative differences.

- **weights and tokens**: XXH3 of every whole initial weight, and a hash of every row of every step's batch, equal to
  one rank's.
- **fp64**: `training.dtype = "float64"`, {STEPS} steps, loss and gradient norm, limit {LIMITS['float64'][1]:.0e}. This is the
  proof: what is left is rounding. Largest of all: {worst['float64']:.1e}.
- **fp32**: the first {LIMITS['float32'][0]} steps, loss (the norm is judged too), limit {LIMITS['float32'][1]:.0e}. Largest of all: {worst['float32']:.1e};
  over all {STEPS} steps, where rounding grows and nothing is judged: {later:.1e}.

Models of 2 layers, 8 sequences of 64 tokens per step: *plain* (dim 64, 8 heads, 4 key heads), *tied* (head and
embedding share one weight), *uneven* (dim 70, vocabulary 2,051, hidden size odd: nothing divides by the ranks).

{table(rows)}

Made by `python3 tests/parity/ladder.py --write docs/parity.md` in {seconds:.0f} s; the test `parity.ladder` runs the same
rungs and fails when one leaves its limits.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--only", metavar="TEXT", default="")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--dtypes", nargs="+", default=list(LIMITS), choices=list(LIMITS))
    arguments = parser.parse_args()
    start = time.monotonic()
    rows, problems = [], []
    for model in arguments.models:
        for dtype in arguments.dtypes:
            reference = run(Rung("1 rank"), model, dtype)
            for rung in RUNGS:
                if arguments.only not in rung.name:
                    continue
                try:
                    row, wrong = judge(rung, model, dtype, run(rung, model, dtype), reference)
                    rows.append(row)
                except (RuntimeError, AssertionError, OSError, subprocess.TimeoutExpired) as error:
                    wrong = [str(error)]
                    row = None
                problems += wrong
                figures = f"loss {row['loss']:.1e} norm {row['norm']:.1e}" if row else "failed to run"
                print(f"{model:7} {dtype} {rung.name:42} {figures} {'; '.join(wrong) or 'ok'}", flush=True)
    if arguments.write and not problems:
        pathlib.Path(arguments.write).write_text(document(rows, time.monotonic() - start))
    print(f"{len(rows)} runs, {len(problems)} problems, {time.monotonic() - start:.0f} s")
    for problem in problems:
        print("FAILED", problem)
    return 1 if problems or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
