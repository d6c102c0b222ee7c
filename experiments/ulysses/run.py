#!/usr/bin/env python3
"""Measures Ulysses and context parallelism: bytes that attention sends (simulated ranks) and the time of a step in float32 on 2 and 4 gloo
ranks. Flags: experiments/tools/study.py."""

import os
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from study import Run, Study

P = "--parallelism."
NAME = "maintainers/ulysses"
LAYERS, DIM, HEADS, SEQ_LEN = 4, 256, 8, 1024
STEPS = {2: 10, 4: 4}  # of a run with this number of ranks; the first two are not counted
REPEATS = {2: (1, 2, 3), 4: (1,)}  # runs of each number of ranks
SIZES = ["--training.dtype", "float32", "--model.dim", DIM, "--model.n_layers", LAYERS, "--model.n_heads", HEADS, "--training.seq_len", SEQ_LEN,
         "--training.local_batch_size", "1", "--training.global_batch_size", "1", "--device.transport", "gloo"]
KEY_HEADS = (8, 4)
DEGREES = (2, 4, 8)


def context(ranks, *flags):
    return [P + "further", "", P + "context_parallel_degree", ranks, *flags]


METHODS = {"Ulysses, own axis": lambda ranks: [f"{P}{NAME}.degree", ranks],
           "Ulysses, axis cp": lambda ranks: context(ranks, P + "context_parallel", NAME, f"{P}{NAME}.degree", "1"),
           "all-gather": lambda ranks: context(ranks),
           "ring": lambda ranks: context(ranks, P + "context_parallel_rotate_method", "alltoall")}
ATTENTION = {("ulysses", "all_to_all"), ("cp", "all_to_all"), ("cp", "all_gather"), ("cp", "reduce_scatter"), ("cp", "send")}


def simulate(study, method, ranks, key_heads):
    """Bytes that rank 0 sends in a step: in attention, and in all."""
    key = f"bytes, {method}, {key_heads} key heads/{ranks}"
    if key not in study.records:
        assert study.trains, f"results.json lacks {key}: start this script without --figures and --check"
        command = [study.flags.titan, "train", "--job.config_file", study.recipe, "--plugins.paths", study.flags.plugins, "--job.dump_folder",
                   pathlib.Path(study.flags.outputs) / "simulated", *SIZES, "--model.n_kv_heads", key_heads, "--training.steps", "1",
                   "--comm.mode", "fake_backend", "--world-size", ranks, *METHODS[method](ranks)]
        done = subprocess.run([str(part) for part in command], cwd=study.root, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True,
                              text=True, check=True)
        sent = {(group, operation): int(count) for group, operation, count in
                re.findall(r"^  (\S+) (\S+) +\S+ GiB +(\d+) bytes  in", done.stdout, re.M)}
        memory = int(re.search(r"most at once, with activations +\S+ GiB +(\d+) bytes", done.stdout)[1])
        study.records[key] = {"attention": sum(count for operation, count in sent.items() if operation in ATTENTION), "all": sum(sent.values()),
                              "memory": memory}
        study.save()
    return study.records[key]


def time_run(method, ranks, repeat):
    return Run(f"{method}, {ranks} ranks", repeat, [*SIZES, "--model.n_kv_heads", "8", "--training.steps", STEPS[ranks], *METHODS[method](ranks)], ranks)


def collect(folder, lines):
    steps = [line["time_metrics/end_to_end(s)"] for line in lines[2:]]
    return {"seconds": round(statistics.median(steps), 4), "fastest": round(min(steps), 4)}


def bytes_table(study):
    rows = ["| key heads | ranks | " + " | ".join(METHODS) + " |", "|---" * (len(METHODS) + 2) + "|"]
    for key_heads in KEY_HEADS:
        for ranks in DEGREES:
            if key_heads % ranks:
                cells = ["refused" if "Ulysses" in method else f"{simulate(study, method, ranks, key_heads)['attention'] / 2**20:.2f}" for method in METHODS]
            else:
                cells = [f"{simulate(study, method, ranks, key_heads)['attention'] / 2**20:.2f}" for method in METHODS]
            rows.append(f"| {key_heads} | {ranks} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def memory_table(study):
    rows = ["| ranks | | " + " | ".join(METHODS) + " |", "|---" * (len(METHODS) + 2) + "|"]
    for ranks in DEGREES:
        for what, number in (("all MiB sent in a step", "all"), ("MiB of a rank at most, with activations", "memory")):
            rows.append(f"| {ranks} | {what} | " + " | ".join(f"{simulate(study, method, ranks, 8)[number] / 2**20:.1f}" for method in METHODS) + " |")
    return "\n".join(rows)


def time_table(study):
    rows = ["| ranks | " + " | ".join(METHODS) + " |", "|---" * (len(METHODS) + 1) + "|"]
    for ranks in REPEATS:
        cells = []
        for method in METHODS:
            records = study.of(f"{method}, {ranks} ranks")
            cells.append(f"{statistics.median(record['seconds'] for record in records):.2f} ({min(record['fastest'] for record in records):.2f})")
        rows.append(f"| {ranks} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main():
    study = Study(__file__, describe=__doc__)
    study.write("bytes", bytes_table(study))
    study.write("memory", memory_table(study))
    study.flags.jobs = 1
    study.run([time_run(method, ranks, repeat) for ranks in REPEATS for repeat in REPEATS[ranks] for method in METHODS], collect)
    study.write("times", time_table(study))

    def plot(axes):
        for axis, key_heads in zip(axes, KEY_HEADS, strict=True):
            for method in ("Ulysses, own axis", "all-gather", "ring"):
                ranks = [degree for degree in DEGREES if "Ulysses" not in method or key_heads % degree == 0]
                axis.plot(ranks, [simulate(study, method, degree, key_heads)["attention"] / 2**20 for degree in ranks], marker="o", label=method)
            axis.set_xlabel("ranks that share a sequence")
            axis.set_xticks(DEGREES)
            axis.set_ylabel("MiB sent by a rank in a step")
            axis.set_title(f"{HEADS} query heads, {key_heads} key heads", fontsize=10)
            axis.legend(fontsize=8)
    study.figure("bytes.svg", plot, columns=2)
    study.save_readme()


if __name__ == "__main__":
    main()
