#!/usr/bin/env python3
"""Compares differential attention with softmax attention in a Llama of equal size: each learning rate with one seed, one rate of each with three.
Flags: experiments/tools/study.py."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from study import Run, Study, interval

MODELS = {"softmax": ["--model.name", "llama3"], "differential": []}
RATES, SEEDS = ("1e-3", "3e-3", "1e-2", "3e-2"), (42, 43, 44)
WITH_ALL_SEEDS = {"softmax": "1e-2", "differential": "3e-2"}  # their rates


def name_of(model, rate):
    return f"{model}, lr {rate}"


def run_of(model, rate, seed):
    return Run(name_of(model, rate), seed, [*MODELS[model], "--optimizer.lr", rate])


def main():
    study = Study(__file__, describe=__doc__)
    study.run([run_of(model, rate, SEEDS[0]) for model in MODELS for rate in RATES])
    study.run([run_of(model, rate, seed) for seed in SEEDS for model, rate in WITH_ALL_SEEDS.items()])

    study.write("rates", study.table([([model, rate], name_of(model, rate)) for model in MODELS for rate in RATES], head=("attention", "lr")))
    softmax, differential = (study.final(name_of(model, rate)) for model, rate in WITH_ALL_SEEDS.items())
    mean, half = interval([b - a for a, b in zip(softmax, differential, strict=True)])
    rates = WITH_ALL_SEEDS["differential"], WITH_ALL_SEEDS["softmax"]
    study.write("difference", f"Differential at {rates[0]} minus softmax at {rates[1]}, seed by seed: {mean:+.3f} ± {half:.3f} nats.")
    study.draw("curve.svg", {f"{model}, lr {rate}": study.of(name_of(model, rate)) for model, rate in WITH_ALL_SEEDS.items()})
    study.save_readme()


if __name__ == "__main__":
    main()
