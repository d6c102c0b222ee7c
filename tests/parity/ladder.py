#!/usr/bin/env python3
"""The parity ladder: one model trained under every layout, against one rank.

Judged: hashes of all initial weights and of each step's tokens are equal; in float64 the losses and gradient norms of
20 steps agree within 1e-9 relative; in float32 those of the first 5 steps within 1e-5 (later ones are shown only:
rounding grows from step to step).

    python3 tests/parity/ladder.py                        # each layout once per dtype; exit code 1 when a rung fails
    python3 tests/parity/ladder.py --full                 # each layout with each model, all steps
    python3 tests/parity/ladder.py --write docs/results/parity.md # the same, and writes the table
    python3 tests/parity/ladder.py --only "TP 2"          # rungs whose name contains the text
    python3 tests/parity/ladder.py --everyday             # each dimension once, a product of three, one with experts

Without --full each layout uses one model, in rotation, shifted by one in float32; float64 runs 10 steps;
every eighth layout also runs in float32, for the 5 judged steps; models with experts run in float64 only. ctest sets TITAN_SOURCE_DIR,
TITAN_PROGRAM and TITAN_WORK.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import layouts
import report

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
WORK = pathlib.Path(os.environ.get("TITAN_WORK", ROOT / "build/release/tests/work")) / "parity"

LOSS, NORM = "loss_metrics/global_avg_loss", "grad_norm"
LIMITS = {"float64": (20, 1e-9), "float32": (5, 1e-5)}  # dtype: judged steps, largest relative difference
FULL_STEPS = {"float64": 20, "float32": 20}
SHORT_STEPS = {"float64": 10, "float32": 5}
SHORT_FLOAT32 = 8  # one of this many layouts
EVERYDAY = ("1 rank, accumulation 4", "DDP 2", "FSDP 2, accumulation 2", "HSDP 2x2", "TP 2", "PP 2, ZBVZeroBubble", "CP 2, alltoall, headtail",
            "PP 2 x CP 2 x TP 2", "CP 2 x FSDP 2, compile", "qwen3: FSDP 2 x TP 2", "EP 2, PP 2 x FSDP 2, DualPipeV")
BASE = {
    "job.config_file": "train_configs/debug_model.toml",
    "metrics.no_enable_tensorboard": None,
    "metrics.loggers": "jsonl",
    "training.seq_len": 64,
    "training.global_batch_size": layouts.GLOBAL_BATCH,
    "lr_scheduler.warmup_steps": 2,
    "debug.deterministic": None,
    "debug.fingerprints": None,
}


@dataclasses.dataclass
class Result:
    losses: list
    norms: list
    fingerprints: list
    sent: float  # MiB per step of rank 0


def command(rung, model, dtype, steps, folder):
    flags = []
    for key, value in {**BASE, **layouts.MODELS[model], **rung.options(WORK), "training.dtype": dtype,
                       "training.steps": steps, "job.dump_folder": folder}.items():
        values = [] if value is None else value if isinstance(value, list) else [value]
        flags += [f"--{key}", *map(str, values)]
    train = ["train", *flags]
    return train if rung.ranks == 1 else ["launch", "--nproc", str(rung.ranks), "--log-dir", f"{folder}/logs", "--",
                                          *train]


class Refused(RuntimeError):
    """The configuration refused the layout before anything started."""


def run_in(folder, rung, model, dtype, steps):
    """The lines of metrics.jsonl."""
    done = subprocess.run([TITAN, *command(rung, model, dtype, steps, folder)], cwd=ROOT, stdin=subprocess.DEVNULL,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise (Refused if done.returncode == 2 else RuntimeError)(
            f"{rung.name}, {model}, {dtype}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def run(rung, model, dtype, steps):
    folder = WORK / f"{rung.name}-{rung.layers}-{rung.documents}-{model}-{dtype}".replace(" ", "_").replace(",", "")
    shutil.rmtree(folder, ignore_errors=True)
    lines = run_in(folder, rung, model, dtype, steps)
    fingerprints = (folder / "fingerprints.jsonl").read_text().splitlines()
    result = Result([line[LOSS] for line in lines], [line[NORM] for line in lines], fingerprints,
                    lines[-1].get("comm_metrics/sent_per_step(MiB)", 0.0))
    assert len(result.losses) == steps, f"{rung.name}: {len(result.losses)} of {steps} steps were logged"
    assert len(fingerprints) > steps, f"{rung.name}: no fingerprints"
    shutil.rmtree(folder, ignore_errors=True)
    return result


class References:
    """Results of one rank, each computed on first use."""

    def __init__(self, steps):
        self.steps = steps
        self.found = {}
        self.lock = threading.Lock()

    def get(self, rung, model, dtype):
        key = rung.layers, rung.documents, model, dtype
        with self.lock:
            is_first = key not in self.found
            future = self.found.setdefault(key, concurrent.futures.Future())
        if is_first:
            try:
                alone = layouts.Rung("1 rank", layers=rung.layers, documents=rung.documents)
                future.set_result(run(alone, model, dtype, self.steps[dtype]))
            except Exception as error:
                future.set_exception(error)
        return future.result()


def difference(values, expected, steps):
    return max(abs(a - b) / abs(b) for a, b in zip(values[:steps], expected[:steps], strict=True))


def judge(rung, model, dtype, references):
    """Runs the rung: one row of the table, and its problems."""
    steps = references.steps[dtype]
    alone = references.get(rung, model, dtype)
    result = run(rung, model, dtype, steps)
    judged, limit = LIMITS[dtype]
    loss, norm = (difference(getattr(result, name), getattr(alone, name), judged) for name in ("losses", "norms"))
    problems = []
    if result.fingerprints != alone.fingerprints:
        differing = [a for a, b in zip(result.fingerprints, alone.fingerprints) if a != b]
        problems.append(f"fingerprints differ: {differing[:3]}")
    if not (loss <= limit and norm <= limit):
        problems.append(f"loss differs by {loss:.1e}, norm by {norm:.1e}, limit {limit:.0e}")
    row = {"rung": rung.name, "ranks": rung.ranks, "layers": rung.layers, "model": model, "dtype": dtype, "loss": loss,
           "norm": norm, "last": difference(result.losses, alone.losses, steps), "sent": result.sent,
           "equal": result.fingerprints == alone.fingerprints, "losses": result.losses, "norms": result.norms}
    return row, [f"{rung.name}, {model}, {dtype}: {problem}" for problem in problems]


def cells(arguments):
    """[(rung, model, dtype)] to run. Each round runs every rung once in each dtype, with another model. With --full the
    schedules all run with the first model, to be compared with each other."""
    chosen = []
    rungs = [(number, rung) for number, rung in enumerate(layouts.RUNGS)
             if arguments.only in rung.name and rung.ranks <= arguments.most_ranks and (arguments.full or arguments.only or not rung.is_long)]
    if arguments.everyday:
        rungs = [(number, rung) for number, rung in rungs if rung.name in EVERYDAY]
        missing = set(EVERYDAY) - {rung.name for _, rung in rungs}
        assert not missing, f"EVERYDAY names no rung of layouts.py: {sorted(missing)}"
    for turn in range(arguments.turns):
        for number, rung in rungs:
            models = [model for model in arguments.models if model in rung.models]
            if turn < len(models):
                chosen += [(rung, models[(number + shift + turn) % len(models)], dtype)
                           for shift, dtype in enumerate(arguments.dtypes)
                           if dtype == "float64" or not rung.is_exact and (
                               arguments.full or arguments.only or number % SHORT_FLOAT32 == 0)]
    if arguments.full:
        names = {rung.name for ranks in (2, 4) for rung in layouts.schedule_rungs(ranks)}
        compared = [(rung, arguments.models[0], dtype) for _, rung in rungs if rung.name in names
                    for dtype in arguments.dtypes]
        chosen += [cell for cell in compared if cell not in chosen]
    return chosen


def run_all(chosen, steps, jobs, log):
    """Rows and problems. Rows in `log`, a file or None, are not measured again; new ones are added to it."""
    known, references = {}, References(steps)
    if log and log.exists():
        for row in map(json.loads, log.read_text().splitlines()):
            known[row["rung"], row["model"], row["dtype"]] = row

    def measure(cell):
        rung, model, dtype = cell
        try:
            if row := known.get((rung.name, model, dtype)):
                return row, []
            return judge(rung, model, dtype, references)
        except (RuntimeError, AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            return None, [f"{rung.name}, {model}, {dtype}: {error}"]

    rows, problems = [], []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (rung, model, dtype), (row, wrong) in zip(chosen, pool.map(measure, chosen)):
            if row:
                rows.append(row)
            if log and row and not wrong and (rung.name, model, dtype) not in known:
                with log.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            problems += wrong
            figures = f"loss {row['loss']:.1e} norm {row['norm']:.1e}" if row else "failed to run"
            print(f"{model:7} {dtype} {rung.name:50} {figures} {'; '.join(wrong) or 'ok'}", flush=True)
    return rows, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--everyday", action="store_true")
    parser.add_argument("--turns", type=int, metavar="N", help="models for each layout and dtype; 1, with --full all")
    parser.add_argument("--write", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--log", metavar="FILE", type=pathlib.Path,
                        help="keeps each row of a full run, so that an interrupted run can continue")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="layouts at a time")
    parser.add_argument("--only", metavar="TEXT", default="")
    parser.add_argument("--device", metavar="NAME", help="device of every rank, also of the single one (default: the configuration's)")
    parser.add_argument("--most-ranks", type=int, default=10**6, metavar="N", help="leave out layouts of more ranks")
    parser.add_argument("--models", nargs="+", default=list(layouts.MODELS), choices=list(layouts.MODELS))
    parser.add_argument("--dtypes", nargs="+", default=list(LIMITS), choices=list(LIMITS))
    arguments = parser.parse_args()
    arguments.full = arguments.full or arguments.write is not None
    if arguments.device:
        BASE["device.name"] = arguments.device
    arguments.turns = arguments.turns or (len(arguments.models) if arguments.full else 1)
    if arguments.log and not arguments.full:
        parser.error("--log goes with --full")
    start = time.monotonic()
    WORK.mkdir(parents=True, exist_ok=True)
    layouts.prepare(WORK, ROOT / "tests/assets/corpus/train.jsonl")
    rows, problems = run_all(cells(arguments), FULL_STEPS if arguments.full else SHORT_STEPS, arguments.jobs, arguments.log)
    if arguments.write and not problems:
        arguments.write.write_text(report.document(rows, LIMITS, FULL_STEPS["float64"], arguments.turns))
    print(f"{len(rows)} runs, {len(problems)} problems, {time.monotonic() - start:.0f} s")
    for problem in problems:
        print("FAILED", problem)
    return 1 if problems or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
