#!/usr/bin/env python3
"""Loss curves over seeds, layouts, dtypes and optimizers, compared with torchtitan v0.2.2's. Checks them and writes a
page.

    .venv/bin/python tests/convergence/convergence.py --torchtitan bench/bin/python                         # plan "standard"
    .venv/bin/python tests/convergence/convergence.py --torchtitan bench/bin/python --write docs/results/convergence.md
    .venv/bin/python tests/convergence/convergence.py --plan quick                                          # half a minute

bench: a virtual environment with torchtitan==0.2.2, torch 2.11.0, tokenizers and safetensors, as `tools/long_checks.sh
convergence` makes it. Each run's curve is kept in --results. Called again, the script runs the missing cells and checks
all curves, so that a long plan can be run in parts (--only, --limit). Exit code 1: a curve deviates or a run failed;
with --complete also if one is missing. On two idle cores quick takes half a minute, standard about 35 minutes, full a
day.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import cells
import page

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
RESULTS = ROOT / "build/convergence"
TIMEOUT = 4 * 3600


def run(*command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=TIMEOUT)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {' '.join(map(str, command))}\n{done.stderr[-1500:]}")
    return done.stdout


def commit():
    """The source version of the program, from `titan --version`."""
    return run(TITAN, "--version").splitlines()[0]


def train_titan(cell):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        launch = ["launch", "--nproc", cell.ranks, "--log-dir", folder, "--"] if cell.ranks > 1 else []
        run(TITAN, *launch, "train", *cells.train_flags(cell), "--job.dump_folder", f"{folder}/out")
        lines = [json.loads(line) for line in (pathlib.Path(folder) / "out/metrics.jsonl").read_text().splitlines()]
    return {"losses": [line["loss_metrics/global_avg_loss"] for line in lines], "norms": [line["grad_norm"] for line in lines]}


def train_torchtitan(cell, python):
    """Runs torchtitan from Titan's initial weights, written as a Hugging Face folder."""
    model = cells.MODELS[cell.model]
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run(TITAN, "train", *cells.model_flags(cell), "--metrics.loggers", "jsonl", "--metrics.no_enable_tensorboard",
            "--checkpoint.enable", "--checkpoint.create_seed_checkpoint", "--job.dump_folder", folder)
        run(TITAN, "convert", "to-hf", f"{folder}/checkpoint/step-0", f"{folder}/hf")
        job = {"weights": f"{folder}/hf/model.safetensors", "texts": str(ROOT / "tests/assets/corpus/train.jsonl"),
               "tokenizer": str(ROOT / "tests/assets/tokenizer/tokenizer.json"), "rows": cells.ROWS, "seq_len": model.seq_len,
               "shape": model.shape, "steps": model.steps, "numbers": cell.numbers, "lr": model.lr, "warmup": cells.WARMUP}
        (pathlib.Path(folder) / "job.json").write_text(json.dumps(job))
        out = run(python, "-W", "ignore", pathlib.Path(__file__).parent / "torchtitan_curve.py", f"{folder}/job.json")
    return json.loads(out.splitlines()[-1])


def recipe(cell):
    """A hash that changes when the cell's run would change; then its curve is computed again."""
    flags = [*map(str, cells.train_flags(cell)), cell.trainer]
    return hashlib.sha256("\0".join(flags).encode()).hexdigest()[:16]


def read(folder, cell):
    """The stored result of a cell, or None."""
    path = folder / cell.file
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    return result if result["recipe"] == recipe(cell) else None


def make(folder, cell, options):
    begin = time.monotonic()
    result = {"cell": str(cell), "recipe": recipe(cell), "program": commit()}
    try:
        curve = train_titan(cell) if cell.trainer == "Titan" else train_torchtitan(cell, options.torchtitan)
        if len(curve["losses"]) != cells.MODELS[cell.model].steps:
            raise RuntimeError(f"{len(curve['losses'])} steps instead of {cells.MODELS[cell.model].steps}")
        result |= curve
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        result["failed"] = str(error)
    result["seconds"] = time.monotonic() - begin
    part = folder / (cell.file + ".part")
    part.write_text(json.dumps(result))
    part.replace(folder / cell.file)
    what = result.get("failed", "").splitlines()[:1] or [f"{result['losses'][0]:.4f} -> {result['losses'][-1]:.4f}"]
    print(f"{result['seconds']:7.1f} s  {cell}: {what[0]}", flush=True)


def chosen(options):
    wanted = [cell for cell in cells.PLANS[options.plan]() if any(text in str(cell) for text in options.only or [""])]
    if not wanted:
        raise SystemExit(f"no run of plan '{options.plan}' is called {' or '.join(options.only)}; one is called: {cells.Cell('debug')}")
    if not options.torchtitan:
        left_out = [cell for cell in wanted if cell.trainer == "torchtitan"]
        if left_out:
            print(f"{len(left_out)} curves of torchtitan are not made: --torchtitan names no Python that has it")
        wanted = [cell for cell in wanted if cell.trainer == "Titan" or read(options.results, cell)]
    return wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", choices=list(cells.PLANS), default="standard")
    parser.add_argument("--only", action="append", metavar="TEXT", help="runs whose name contains the text; may be repeated")
    parser.add_argument("--limit", type=int, help="make at most this many curves, for a part of a long plan")
    parser.add_argument("--again", action="store_true", help="make existing curves again")
    parser.add_argument("--complete", action="store_true", help="fail when a curve of the plan is missing")
    parser.add_argument("--jobs", type=int, default=2, help="runs of one rank at a time; runs of two ranks take turns")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="folder of the curves")
    parser.add_argument("--torchtitan", metavar="PYTHON", help="a Python that has torchtitan v0.2.2")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="write the page, and its figures next to it")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)

    wanted = chosen(options)
    missing = [cell for cell in wanted if options.again or read(options.results, cell) is None][:options.limit]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda cell: make(options.results, cell, options), [cell for cell in missing if cell.ranks == 1]))
    for cell in missing:
        if cell.ranks > 1:
            make(options.results, cell, options)

    results = {cell: result for cell in cells.shown(options.plan) if (result := read(options.results, cell))}
    verdicts = page.judge(results)
    print("\n".join(page.table(results, verdicts)))
    if options.write:
        page.write(options.write, options.plan, results, verdicts)
    failures = [f"{cell}: {text}" for cell, found in verdicts.items() for text in found if text.startswith("FAILED")]
    plan = cells.PLANS[options.plan]()
    there = sum(cell in results for cell in plan)
    print("\n".join(failures) or f"{there} of {len(plan)} curves are there, all where they should be")
    return 1 if failures or not results or (options.complete and there < len(plan)) else 0


if __name__ == "__main__":
    sys.exit(main())
