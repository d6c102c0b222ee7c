"""Bytes and loss of semi-synchronous training compared with synchronous training, on the debug model in two replica groups:

    python3 tests/benchmarks/semi_sync.py --write docs/results/semi_sync.md     # runs everything, fills in the table, draws the curve

Needs torchft's lighthouse (requirements-torchft.txt) and matplotlib. Takes some minutes."""

import argparse
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("TITAN_SOURCE_DIR", str(ROOT))
os.environ.setdefault("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
sys.path.insert(0, str(ROOT / "tests/end_to_end"))
from semi_sync_case import Groups  # noqa: E402

BEGIN, END = "<!-- begin: tests/benchmarks/semi_sync.py -->\n", "<!-- end -->\n"
OWN, ALL = "loss_metrics/group_avg_loss", "loss_metrics/global_avg_loss"
JOB = """
[metrics]
log_freq = 1
loggers = ["jsonl"]
[model]
name = "llama3_ft"
flavor = "debugmodel"
hf_assets_path = "./tests/assets/tokenizer"
[optimizer]
name = "AdamW"
lr = 8e-4
[lr_scheduler]
warmup_steps = 10
decay_ratio = 0.0
[training]
dataset = "jsonl"
dataset_path = "./tests/assets/corpus/train.jsonl"
local_batch_size = 4
global_batch_size = 8
seq_len = 128
[activation_checkpoint]
mode = "none"
[fault_tolerance]
group_size = 2
[debug]
seed = 42
"""
DILOCO = ("--fault_tolerance.semi_sync_method=diloco",)
RUNS = {
    "DDP, each step": None,
    "LocalSGD": ("--fault_tolerance.semi_sync_method=local_sgd",),
    "DiLoCo": DILOCO,
    "DiLoCo, 2 fragments, delay 2": (*DILOCO, "--fault_tolerance.num_fragments=2", "--fault_tolerance.fragment_sync_delay=2"),
    "DiLoCo, int8": (*DILOCO, "--fault_tolerance.should_quantize"),
    "DiLoCo, float8_e4m3": (*DILOCO, "--fault_tolerance.should_quantize", "--parallelism.semi_sync.quantized_type=float8_e4m3"),
}


def run(folder, options, steps, sync_steps):
    """MiB that a rank sends per step, and the loss of each step over all rows."""
    common = (f"--training.steps={steps}", f"--fault_tolerance.sync_steps={sync_steps}")
    if options is None:
        with Groups(folder, *common, "--parallelism.data_parallel_replicate_degree=2", "--parallelism.data_parallel_shard_degree=1",
                    num=1, enabled=False, job=JOB, ranks=2) as one:
            lines = one.run().metrics(0)
        return sum(line["comm_metrics/sent_per_step(MiB)"] for line in lines) / steps, [line[ALL] for line in lines]
    with Groups(folder, *common, *options, job=JOB) as groups:
        groups.run()
        both = [groups.metrics(r) for r in (0, 1)]
    sent = [sum(line["comm_metrics/sent_to_groups(MiB)"] for line in lines) / steps for lines in both]
    return max(sent), [(a[OWN] + b[OWN]) / 2 for a, b in zip(*both, strict=True)]


def draw(curves, target):
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "titan"
    import matplotlib.pyplot as plt
    figure, axis = plt.subplots(figsize=(6.4, 3.6))
    for name, losses in curves.items():
        mean = [sum(losses[max(0, i - 4):i + 1]) / len(losses[max(0, i - 4):i + 1]) for i in range(len(losses))]
        axis.plot(range(1, len(mean) + 1), mean, linewidth=1.2, label=name)
    axis.set_xlabel("step")
    axis.set_ylabel("loss, mean of 5 steps")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--sync-steps", type=int, default=10)
    parser.add_argument("--write", type=pathlib.Path, help="page whose table is replaced; the curve is written next to it")
    arguments = parser.parse_args()
    rows, curves = [], {}
    with tempfile.TemporaryDirectory(prefix="titan_semi_sync_") as folder:
        for name, options in RUNS.items():
            sent, losses = run(pathlib.Path(folder) / re.sub(r"\W+", "_", name), options, arguments.steps, arguments.sync_steps)
            curves[name] = losses
            plain = sent if options is None else plain
            last = sum(losses[-10:]) / len(losses[-10:])
            share = "1" if options is None else f"1/{plain / sent:.1f}"
            rows.append(f"| {name} | {sent:.2f} | {share} | {last:.3f} |")
            print(rows[-1], flush=True)
    table = "\n".join([f"{arguments.steps} steps of 2 x 4 sequences of 128 tokens; sync_steps = {arguments.sync_steps}.", "",
                       "| method | MiB sent per rank and step | of DDP | loss, mean of the last 10 steps |", "|---|---|---|---|", *rows, ""])
    if arguments.write:
        text = arguments.write.read_text()
        arguments.write.write_text(text[:text.index(BEGIN) + len(BEGIN)] + table + text[text.index(END):])
        draw(curves, arguments.write.with_suffix(".svg"))


if __name__ == "__main__":
    main()
