#!/usr/bin/env python3
"""Trains a Llama with and without future heads, with several seeds each, and drafts with the heads: acceptance, speed, and equality with greedy
decoding. Flags: experiments/tools/study.py."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from study import LAST, Run, Study, interval, shown

KINDS = {"main head only": ["--model.future_heads", "0"],
         "2 future heads, weight 0.3": ["--model.future_heads", "2", "--model.future_weight", "0.3"],
         "2 future heads, weight 1": ["--model.future_heads", "2", "--model.future_weight", "1"]}
SEEDS = dict.fromkeys(KINDS, (42, 43, 44)) | {"2 future heads, weight 1": (42, 43)}
DRAFTING = tuple(KINDS)[1:]
SAVES = ["--checkpoint.enable", "--checkpoint.interval", "1000", "--checkpoint.last_save_model_only"]
AUXILIARY = "loss_metrics/global_avg_auxiliary_loss"
# for the speed only: one step of larger networks, whose weights take longer to read than an operation takes to start
SIZES = {"4 x 128": (4, 128, 8), "8 x 512": (8, 512, 3)}  # blocks, width, repeats
WORDS, NEW_TOKENS = 12, 64


def prompts(folder, root, count=16):
    texts = [json.loads(line)["text"] for line in (root / "tests/assets/corpus/validation.jsonl").read_text().splitlines()]
    path = folder / "prompts.txt"
    path.write_text("".join(" ".join(text.split()[:WORDS]) + "\n" for text in texts[:count]))
    return path


def speculate(study, run, repeats, count):
    """What drafting from the checkpoint of `run` gave; measured once, after all trainings, so that nothing else runs meanwhile."""
    key = f"drafting, {run.key}"
    if key not in study.records:
        assert study.trains, f"results.json lacks '{key}': start this script without --figures and --check"
        folder = pathlib.Path(study.flags.outputs) / run.key.replace(" ", "_")
        command = [study.flags.titan, "maintainers/speculate", "--checkpoint", folder / "checkpoint", "--prompts",
                   prompts(folder, study.root, count), "--max-new-tokens", NEW_TOKENS, "--ignore-eos", "--compare", "--repeats", repeats]
        done = subprocess.run([str(part) for part in command], cwd=study.root, capture_output=True, text=True,
                              env=os.environ | {"OMP_NUM_THREADS": "1", "TITAN_PLUGIN_PATH": study.flags.plugins})
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        study.records[key] = json.loads(done.stdout.splitlines()[-1])
        study.save()
    return study.records[key]


def training_runs(names=tuple(KINDS)):
    return [Run(name, seed, [*KINDS[name], *SAVES]) for name in names for seed in SEEDS[name]]


def collect(_, lines):
    if AUXILIARY not in lines[-1]:
        return {}
    return {"auxiliary": round(statistics.fmean(line[AUXILIARY] for line in lines[-LAST:]), 4)}


def size_runs():
    for name, (layers, dim, _) in SIZES.items():
        yield Run(f"speed, {name}", 42, ["--model.n_layers", str(layers), "--model.dim", str(dim), "--training.steps", "1",
                                         "--training.local_batch_size", "1", *SAVES])


def percent(part, whole):
    return f"{100 * part / whole:.1f} %"


def drafting_table(study):
    rows = ["| training | seed | drafts accepted at distance 2 | at distance 3 | tokens per forward | tokens/s, drafting | tokens/s, greedy |",
            "|---|---|---|---|---|---|---|"]
    for run in training_runs(DRAFTING):
        found = speculate(study, run, repeats=3, count=16)
        assert found["equals_greedy"]
        rates = [percent(a, d) for a, d in zip(found["accepted"], found["drafted"], strict=True)]
        rows.append(f"| {run.name} | {run.seed} | {rates[0]} | {rates[1]} | {found['tokens'] / found['forwards']:.2f} | "
                    f"{found['tokens_per_second']:.0f} | {found['plain_tokens_per_second']:.0f} |")
    return "\n".join(rows)


def speed_table(study):
    rows = ["| blocks x width | ms per token, greedy | ms per forward, drafting | ratio: tokens per forward above which drafting pays |",
            "|---|---|---|---|"]
    for run, (_, _, repeats) in zip(size_runs(), SIZES.values(), strict=True):
        found = speculate(study, run, repeats, count=2)
        plain = 1000 / found["plain_tokens_per_second"]
        forward = 1000 * found["tokens"] / found["tokens_per_second"] / found["forwards"]
        rows.append(f"| {run.name.removeprefix('speed, ')} | {plain:.2f} | {forward:.2f} | {forward / plain:.2f} |")
    return "\n".join(rows)


def main():
    study = Study(__file__, describe=__doc__)
    study.run(training_runs(), collect)
    study.flags.jobs = 1
    study.run(list(size_runs()))

    study.write("losses", study.table([([name], name) for name in KINDS], head=("training",)))
    base = study.final("main head only")
    lines = []
    for name in DRAFTING:
        mean, half = interval([b - a for a, b in zip(base, study.final(name))])
        auxiliary = shown([record["auxiliary"] for record in study.of(name)])
        lines.append(f"- {name}: {mean:+.3f} ± {half:.3f} nats compared with the main head alone, seed by seed; auxiliary loss {auxiliary}.")
    study.write("differences", "\n".join(lines))
    study.write("drafting", drafting_table(study))
    study.write("speed", speed_table(study))
    study.draw("curve.svg", {name: study.of(name) for name in KINDS}, ylabel="training loss of the main head (nats per token)")
    study.save_readme()


if __name__ == "__main__":
    main()
