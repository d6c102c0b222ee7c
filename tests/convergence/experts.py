"""Compares a mixture of experts with a dense model of as many active parameters, on the bundled text: whether its loss
falls below and its load stays even.

    .venv/bin/python tests/convergence/experts.py [--steps 300] [--write docs/guides/mixture_of_experts.md]    # some 20 minutes on two cores

mixtral's debug model (8 experts of 512, of which a token uses 2) with a bias that moves by 1e-2 or 1e-3 a step and
without, and a Llama of the same blocks with a feed-forward of 1,024: the same active parameters except the router (0.2
%), the same tokens in the same order, AdamW. Exit code 1 when the mixture's loss is not below the dense one's, or, with
the bias of 1e-2, an expert gets at least twice its share after the first sixth of the run.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
BEGIN, END = "<!-- compared with a dense model -->", "<!-- end of compared with a dense model -->"
LAYERS, EXPERTS, LAST = 4, 8, 20
LOSS, LOAD = "loss_metrics/global_avg_loss", "experts/load/layers."
RECIPE = ["--training.seq_len", 256, "--training.local_batch_size", 4, "--metrics.no_enable_tensorboard", "--model.rope_theta", 1e6,
          "--metrics.log_freq", 1]
MIXTURE = ["--job.config_file", "train_configs/mixtral_debug.toml", "--metrics.loggers", "jsonl,expert_load",
           "--logger.expert_load.each_expert", "--logger.expert_load.every", 1]
RUNS = {
    "mixture": [*MIXTURE, "--model.load_balance_coeff", 1e-2],
    "mixture, bias by 1e-3": [*MIXTURE, "--model.load_balance_coeff", 1e-3],
    "mixture, no bias": [*MIXTURE, "--model.load_balance_coeff", 0],
    "dense": ["--job.config_file", "train_configs/mixtral_debug.toml", "--model.name", "llama3", "--model.flavor", "debugmodel",
              "--model.n_layers", LAYERS, "--model.n_heads", 8, "--model.n_kv_heads", 4, "--model.multiple_of", 1024,
              "--model.rope_scaling.scaling_factor", 1, "--metrics.loggers", "jsonl"],
}
MIXTURES = [name for name in RUNS if name != "dense"]


def run(flags, steps, folder):
    words = [TITAN, "train", *flags, *RECIPE, "--training.steps", steps, "--job.dump_folder", folder]
    if "llama3" in flags:  # an option of mixtral that the file sets
        text = (ROOT / "train_configs/mixtral_debug.toml").read_text()
        config = pathlib.Path(folder) / "dense.toml"
        config.write_text("".join(line for line in text.splitlines(keepends=True) if "load_balance" not in line))
        words[words.index("train_configs/mixtral_debug.toml")] = config
    done = subprocess.run(list(map(str, words)), cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]


def mean_loss(lines, step):
    losses = [line[LOSS] for line in lines if LOSS in line and step - LAST < line["step"] <= step]
    return sum(losses) / len(losses)


def greatest_load(lines, step):
    """The largest load of any expert in any layer, relative to even load: the mean over the last
    steps up to `step`."""
    chosen = [line for line in lines if f"{LOAD}0.moe/0" in line and step - LAST < line["step"] <= step]
    return max(sum(line[f"{LOAD}{layer}.moe/{expert}"] for line in chosen) / len(chosen)
               for layer in range(LAYERS) for expert in range(EXPERTS))


def marks_of(steps):
    return list(range(steps // 6, steps + 1, steps // 6))


def table(found, steps):
    marks = marks_of(steps)
    lines = [f"Loss, mean of the {LAST} steps up to:", "", "| | " + " | ".join(map(str, marks)) + " |", "|---|" + "---:|" * len(marks)]
    for name, metrics in found.items():
        lines.append(f"| {name} | " + " | ".join(f"{mean_loss(metrics, step):.3f}" for step in marks) + " |")
    for name in MIXTURES:
        lines.append(f"| fullest expert of any layer over the mean, {name} | "
                     + " | ".join(f"{greatest_load(found[name], step):.2f}" for step in marks) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--write", type=pathlib.Path, help="a Markdown file with the place for the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, flags in RUNS.items():
            out = pathlib.Path(folder) / name.replace(", ", "_").replace(" ", "_")
            out.mkdir()
            found[name] = run(flags, arguments.steps, out)
    text = table(found, arguments.steps)
    print(text)
    if arguments.write:
        before, rest = arguments.write.read_text().split(BEGIN)
        arguments.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    falls = mean_loss(found["mixture"], arguments.steps) < mean_loss(found["dense"], arguments.steps)
    even = all(greatest_load(found["mixture"], step) < 2 for step in marks_of(arguments.steps)[1:])
    return 0 if falls and even else 1


if __name__ == "__main__":
    sys.exit(main())
