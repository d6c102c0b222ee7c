#!/usr/bin/env python3
"""Compares two commits bit for bit: losses, gradient norms, all weights and optimizer states, over 24 training jobs on the CPU.

    tools/same_bits.py HEAD~3 HEAD                 two commits; each is built once, in a worktree below build/same_bits
    tools/same_bits.py HEAD .                      a commit, and the current build of this tree (build/release)
    tools/same_bits.py ../other .                  the current build of another tree, for example with another LibTorch
    tools/same_bits.py HEAD . --only 'TP 2' muon   only these jobs; --list shows all
    tools/same_bits.py . .                         the same program twice: checks that the jobs are repeatable
    tools/same_bits.py ../other . --within 2e-4    accepts relative differences of losses and norms up to this
    tools/same_bits.py ../other . --across         each side resumes runs that the other saved after half of the steps

A change does not alter results if this prints "24 of 24 jobs are the same". The jobs cover every model family, every mesh axis and
some combinations, two pipeline schedules, float64, float32 and bf16, emulated float8 and MXFP8, fused and composed layers,
recomputation, LoRA, other optimizers, and a resume halfway. Exit code 1: a job differs or failed, on one side or both. Standard
library only; building a commit takes as long as tools/setup.sh.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/gpu"))
from running import LOSS, tensors_of  # noqa: E402

STEPS = 4
BF16 = ["--training.mixed_precision_param", "bfloat16"]
FSDP = ["--parallelism.data_parallel_shard_degree"]
# name: (file in train_configs, ranks, flags)
JOBS = {
    "dense fp32": ("debug_model", 1, []),
    "dense bf16": ("debug_model", 1, BF16),
    "dense float64": ("debug_model", 1, ["--training.dtype", "float64"]),
    "dense bf16 weights": ("debug_model", 1, ["--training.dtype", "bfloat16", *BF16]),
    "fused": ("debug_model", 1, ["--compile.enable", *BF16]),
    "recompute": ("debug_model", 1, ["--activation_checkpoint.mode", "full"]),
    "documents": ("debug_model", 1, ["--data.isolate_documents"]),
    "float8": ("debug_model", 1, [*BF16, "--model.converters", "quantize.linear.float8", "--quantize.linear.float8.emulate"]),
    "mxfp8": ("debug_model", 1, [*BF16, "--model.converters", "quantize.linear.mx", "--quantize.linear.mx.recipe_name",
                                 "mxfp8_emulated"]),
    "lora": ("debug_model", 1, ["--model.converters", "lora", "--converter.lora.targets", "wq,wv"]),
    "muon": ("debug_model", 1, ["--optimizer.name", "Muon"]),
    "qwen3": ("qwen3_debug", 1, []),
    "mixtral": ("mixtral_debug", 1, []),
    "deepseek_v3": ("deepseek_v3_debug", 1, []),
    "llama4": ("llama4_debug", 1, []),
    "gpt_oss": ("gpt_oss_debug", 1, []),
    "DDP 2": ("debug_model", 2, ["--parallelism.data_parallel_replicate_degree", 2, *FSDP, 1]),
    "FSDP 2": ("debug_model", 2, [*FSDP, 2, *BF16]),
    "TP 2": ("debug_model", 2, ["--parallelism.tensor_parallel_degree", 2]),
    "PP 2": ("debug_model", 2, ["--parallelism.pipeline_parallel_degree", 2]),
    "PP 2 ZBV": ("debug_model", 2, ["--parallelism.pipeline_parallel_degree", 2, "--parallelism.pipeline_parallel_schedule",
                                    "ZBVZeroBubble"]),
    "CP 2": ("debug_model", 2, ["--parallelism.context_parallel_degree", 2]),
    "EP 2": ("mixtral_debug", 2, [*FSDP, 2, "--parallelism.expert_parallel_degree", 2]),
    "FSDP 2 x TP 2": ("debug_model", 4, [*FSDP, 2, "--parallelism.tensor_parallel_degree", 2]),
}
RESUMED = ("dense fp32", "mixtral", "FSDP 2")  # jobs that are also resumed from their checkpoint after half of the steps


class Side:
    """One of the two programs."""

    def __init__(self, name, root):
        self.name, self.root, self.titan = name, root, root / "build/release/bin/titan"


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()


def torch_root():
    """The LibTorch of this tree, which worktrees use too."""
    found = sorted((ROOT / ".venv/lib").glob("python3.*/site-packages/torch"))
    return os.environ.get("TITAN_TORCH_ROOT") or (str(found[0]) if found else None)


def side_of(name):
    """The side that `name` means: '.' is this tree, a folder with a build is that tree, and a commit is built if it is not yet."""
    if name == ".":
        return Side("this tree", ROOT)
    if (pathlib.Path(name) / "build/release/bin/titan").exists():
        return Side(name, pathlib.Path(name).resolve())
    commit = git("rev-parse", "--verify", f"{name}^{{commit}}")
    folder = ROOT / "build/same_bits" / commit[:12]
    if not (folder / "CMakeLists.txt").exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", "--force", str(folder), commit)
    environment = dict(os.environ)
    if torch := torch_root():
        environment["TITAN_TORCH_ROOT"] = torch
    print(f"building {name} ({commit[:12]}) in {folder}", flush=True)
    subprocess.run([folder / "tools/setup.sh", "--quiet"], env=environment, check=True)
    return Side(f"{name} ({commit[:12]})", folder)


def run(side, name, folder, steps):
    """Trains; returns the reason if that failed, else None."""
    recipe, ranks, flags = JOBS[name]
    launch = ["launch", "--nproc", ranks, "--log-dir", folder.parent / f"{folder.name}_logs", "--"] if ranks > 1 else []
    words = [side.titan, *launch, "train", "--job.config_file", f"train_configs/{recipe}.toml", "--job.dump_folder", folder,
             "--device.name", "cpu", "--training.steps", STEPS, "--training.seq_len", 64, "--metrics.log_freq", 1,
             "--metrics.loggers", "jsonl", "--metrics.no_enable_tensorboard", "--lr_scheduler.warmup_steps", 1,
             "--lr_scheduler.decay_ratio", 0, "--checkpoint.enable", "--checkpoint.interval", STEPS // 2,
             "--checkpoint.no_last_save_model_only", *flags]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TITAN_")}
    environment["OMP_NUM_THREADS"] = "1"
    if steps < STEPS:  # resume from this step; the learning rate schedule stays that of the whole run
        words += ["--checkpoint.load_step", steps]
    done = subprocess.run(list(map(str, words)), cwd=side.root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=900, check=False)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return f"exit code {done.returncode}: " + " / ".join(lines[-4:])[:600]


def curve(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: (line.get(LOSS), line.get("grad_norm")) for line in lines if LOSS in line}


def state(folder):
    """{step: {tensor: hash}} of every checkpoint of a run."""
    return {path.name: tensors_of(path) for path in sorted((folder / "checkpoint").glob("step-*"))}


def outcome(folder):
    return {"curve": curve(folder), "state": state(folder)}


def resume(side, name, folder):
    """Removes the last checkpoint of a finished job and runs the second half again under `side`; returns the outcome, or the reason
    if that failed."""
    shutil.rmtree(folder / f"checkpoint/step-{STEPS}")
    return run(side, name, folder, STEPS // 2) or outcome(folder)


def result_of(side, name, work):
    """Curve and states of one job under one side; the reason as a text if it failed."""
    folder = work / name.replace(" ", "_")
    if why := run(side, name, folder, STEPS):
        return why
    found = outcome(folder)
    if name in RESUMED:
        resumed = resume(side, name, folder)
        if isinstance(resumed, str):
            return f"resumed: {resumed}"
        found.update({f"resumed {part}": value for part, value in resumed.items()})
    shutil.rmtree(folder)
    return found


def across(saver, resumer, name, work):
    """Outcomes of a whole job under `saver`, and with its second half under `resumer`."""
    folder = work / name.replace(" ", "_")
    if why := run(saver, name, folder, STEPS):
        shutil.rmtree(folder, ignore_errors=True)
        return why, "was not started"
    outcomes = outcome(folder), resume(resumer, name, folder)
    shutil.rmtree(folder)
    return outcomes


def largest(old, new):
    """The largest relative difference of two curves, as a text; empty if they do not have the same steps."""
    if old.keys() != new.keys() or any(None in pair for curves in (old, new) for pair in curves.values()):
        return ""
    losses, norms = (max(abs(old[step][i] / new[step][i] - 1) for step in old) for i in (0, 1))
    return f"; largest relative difference of a loss {losses:.1e}, of a norm {norms:.1e}"


def first_difference(old, new):
    """The first difference, in one line; None if there is none."""
    if isinstance(old, str) or isinstance(new, str):
        return f"old: {old if isinstance(old, str) else 'succeeded'}; new: {new if isinstance(new, str) else 'succeeded'}"
    for part in old:
        if part.endswith("curve"):
            for step in sorted(old[part].keys() | new[part].keys()):
                if old[part].get(step) != new[part].get(step):
                    return f"{part}, step {step}: (loss, norm) {old[part].get(step)} and {new[part].get(step)}{largest(old[part], new[part])}"
        elif old[part] != new[part]:
            for step in sorted(old[part].keys() | new[part].keys()):
                a, b = old[part].get(step, {}), new[part].get(step, {})
                names = sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))
                if names:
                    return f"{part}, {step}: {len(names)} of {len(a)} tensors, {', '.join(names[:3])}"
    return None if old["curve"] and all(old["state"].values()) else "the runs wrote no losses or no tensors to compare"


def is_within(old, new, limit):
    """Whether all losses and gradient norms of the two sides are equal up to a relative difference of `limit`."""
    if isinstance(old, str) or isinstance(new, str):
        return False
    curves = [part for part in old if part.endswith("curve")]
    return all(old[part].keys() == new[part].keys() and
               all(a == b or None not in (a, b) and abs(a - b) <= limit * abs(b)
                   for step in old[part] for a, b in zip(old[part][step], new[part][step]))
               for part in curves)


class Tally:
    """Counts the equal runs and those within the limit, and prints a line for each run."""

    def __init__(self, limit):
        self.limit, self.runs, self.same, self.within = limit, 0, 0, 0

    def add(self, name, old, new):
        difference = first_difference(old, new)
        self.runs += 1
        self.same += difference is None
        self.within += difference is not None and is_within(old, new, self.limit)
        print(f"{name}: {'same' if difference is None else difference}", flush=True)

    def exit_code(self, what):
        print(f"{self.same} of {self.runs} {what}" + (f"; {self.within} within {self.limit}" if self.limit else ""))
        return 0 if self.same + self.within == self.runs else 1


def compare_across(sides, chosen, tally):
    with tempfile.TemporaryDirectory(prefix="titan_same_bits_") as folder:
        for saver, resumer in (sides, sides[::-1]):
            for name in chosen:
                tally.add(f"{name}, saved by {saver.name}, resumed by {resumer.name}",
                          *across(saver, resumer, name, pathlib.Path(folder)))
    return tally.exit_code("runs resume with the same bits")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--only", nargs="+", metavar="JOB")
    parser.add_argument("--across", action="store_true")
    parser.add_argument("--within", type=float, default=0, metavar="X")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = options.only or list(RESUMED if options.across else JOBS)
    unknown = [name for name in chosen if name not in JOBS]
    if unknown:
        sys.exit(f"same_bits: error: unknown job {', '.join(unknown)}; known jobs: {', '.join(JOBS)}")
    if options.list:
        print("\n".join(JOBS))
        return 0
    if not options.old or not options.new:
        parser.error("give two commits or folders to compare; '.' is this tree")
    sides = [side_of(options.old), side_of(options.new)]
    missing = [str(side.titan) for side in sides if not side.titan.exists()]
    if missing:
        sys.exit(f"same_bits: error: {missing[0]} is not built; run tools/setup.sh in that tree")
    if options.across:
        return compare_across(sides, chosen, Tally(options.within))
    tally = Tally(options.within)
    with tempfile.TemporaryDirectory(prefix="titan_same_bits_") as folder:
        for name in chosen:
            results = []
            for number, side in enumerate(sides):
                work = pathlib.Path(folder) / str(number)
                work.mkdir(exist_ok=True)
                results.append(result_of(side, name, work))
            tally.add(name, *results)
    return tally.exit_code(f"jobs are the same: {sides[0].name}, {sides[1].name}")


if __name__ == "__main__":
    sys.exit(main())
