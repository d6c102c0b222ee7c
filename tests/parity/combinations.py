#!/usr/bin/env python3
"""Tests random combinations of layouts, activation checkpointing, converters, optimizers, precisions and early optimizer steps.
A combination is judged in three ways:

- losses and gradient norms of 4 steps, compared with one rank: 1e-9 if all is float64, else 2e-2
- 2 steps, a checkpoint and 2 more: bitwise equal to the uninterrupted run
- the same checkpoint resumed under another layout: the tolerances of the first

    python3 tests/parity/combinations.py --draws 60             # prints its seed; exit code 1 when one is wrong
    python3 tests/parity/combinations.py --draws 60 --seed 5    # the same again
    python3 tests/parity/combinations.py --experts              # only models with experts

Combinations that the configuration refuses (exit code 2) are printed and counted, not judged. Takes some 5 s per draw on 2 cores.
"""

import argparse
import dataclasses
import random
import shutil
import sys

import ladder
import layouts
import recompute

STEPS, SAVED = 4, 2
MIXTURES = (*layouts.WITH_EXPERTS, "two_experts")
LIMITS = {"float64": 1e-9, "float32": 2e-2}
LORA = {"model.converters": "lora", "converter.lora.rank": 4, "converter.lora.alpha": 8, "converter.lora.targets": "wq,wv,w2"}
FLOAT8 = {"model.converters": "quantize.linear.float8", "quantize.linear.float8.emulate": None}
CONVERTERS = {
    "none": {},
    "lora": LORA,
    "lora, every layer": {**LORA, "converter.lora.targets": "wq,wk,wv,wo,w1,w2,w3"},
    "float8": FLOAT8,
    "float8 rowwise": {**FLOAT8, "quantize.linear.float8.recipe_name": "rowwise"},
    "float8 rowwise_with_gw_hp": {**FLOAT8, "quantize.linear.float8.recipe_name": "rowwise_with_gw_hp"},
    "float8 gathered": {**FLOAT8, "quantize.linear.float8.enable_fsdp_float8_all_gather": None},
    "mx": {"model.converters": "quantize.linear.mx", "quantize.linear.mx.recipe_name": "mxfp8_emulated"},
    "float8, lora": {**FLOAT8, **LORA, "model.converters": "quantize.linear.float8,lora"},
}
# options of models with experts, under each layer naming
OF_EXPERTS = {
    "none": {},
    "lora, experts": {**LORA, "converter.lora.targets": "wo,experts"},
    "float8": FLOAT8,
    "float8 experts": {"model.converters": "quantize.grouped_mm.float8", "quantize.grouped_mm.float8.fqns": "experts",
                       "quantize.grouped_mm.float8.emulate": None},
}
EXACT = ("none", "lora", "lora, every layer", "lora, experts")
OPTIMIZERS = {
    "AdamW": {},
    "AdamW for-loop": {"optimizer.implementation": "for-loop"},
    "Adam foreach": {"optimizer.name": "Adam", "optimizer.implementation": "foreach"},
    "Muon": {"optimizer.name": "Muon"},
    "SGD": {"optimizer.name": "SGD", "optimizer.momentum": 0.9},
    "Lion": {"optimizer.name": "Lion", "optimizer.lr": 1e-4},
}
PRECISIONS = {"as stored": {}, "float16": {"training.mixed_precision_param": "float16"},
              "bfloat16": {"training.mixed_precision_param": "bfloat16"}}
EARLY = {"optimizer.early_step_in_backward": None, "training.max_norm": 0}
SAVING = {"checkpoint.enable": None, "checkpoint.interval": SAVED, "checkpoint.keep_latest_k": 0,
          "checkpoint.no_last_save_model_only": None, "lr_scheduler.total_steps": STEPS, "debug.seed": 3}


@dataclasses.dataclass
class Combination:
    rung: layouts.Rung
    other: layouts.Rung  # resumes its checkpoint
    model: str
    mode: str
    converter: str
    optimizer: str
    precision: str
    is_early: bool

    @staticmethod
    def draw(chance, rungs):
        rung = chance.choice(rungs)
        other = chance.choice([r for r in rungs if (r.layers, r.documents) == (rung.layers, rung.documents)
                               and set(r.models) & set(rung.models)])
        model = chance.choice([model for model in rung.models if model in other.models])
        has_experts = model in MIXTURES
        return Combination(rung, other, model, *(chance.choice(list(table)) for table in (
            ["none", *recompute.MODES], OF_EXPERTS if has_experts else CONVERTERS, OPTIMIZERS, PRECISIONS)),
            not has_experts and chance.random() < 0.25)

    def __str__(self):
        return (f"{self.rung.name}, then {self.other.name} | {self.model} | {self.mode} | {self.converter} | {self.optimizer} | "
                f"{self.precision}{' | early steps' if self.is_early else ''}")

    @property
    def dtype(self):
        return "float64" if self.converter in EXACT and self.precision == "as stored" else "float32"

    def run(self, rung, folder):
        """{step: (loss, norm)} of the steps of this run, which resumes from the checkpoint in `folder`, if any."""
        options = {**recompute.MODES.get(self.mode, recompute.NONE), **{**CONVERTERS, **OF_EXPERTS}[self.converter],
                   **OPTIMIZERS[self.optimizer], **PRECISIONS[self.precision], **(EARLY if self.is_early else {}), **SAVING}
        lines = ladder.run_in(folder, dataclasses.replace(rung, more={**rung.more, **options}), self.model, self.dtype, STEPS)
        return {line["step"]: (line[ladder.LOSS], line.get(ladder.NORM)) for line in lines}

    def problems(self, folder):
        """Problems, as lines."""
        alone = self.run(layouts.Rung("1 rank", layers=self.rung.layers, documents=self.rung.documents), folder / "alone")
        whole = self.run(self.rung, folder / "whole")
        for name in ("again", "moved"):
            shutil.copytree(folder / "whole", folder / name)
            shutil.rmtree(folder / name / f"checkpoint/step-{STEPS}")
            (folder / name / "metrics.jsonl").unlink()
        again, moved = self.run(self.rung, folder / "again"), self.run(self.other, folder / "moved")
        rest = {step: values for step, values in whole.items() if step > SAVED}
        found = []
        if again != rest:
            found.append(f"went on as {again}, in one piece {rest}")
        for what, values, expected in (("compared with one rank", whole, alone), (f"under {self.other.name}", moved, rest)):
            worst = max(abs(a - b) / abs(b) for step in expected for a, b in zip(values[step], expected[step]) if b)
            print(f"    {what}: {worst:.1e}")
            if not worst <= LIMITS[self.dtype]:
                found.append(f"{what}: {values}, expected {expected}")
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--ranks", type=int, default=4, help="at most")
    parser.add_argument("--experts", action="store_true", help="only models with experts")
    arguments = parser.parse_args()
    print("seed", arguments.seed)
    chance = random.Random(arguments.seed)
    ladder.WORK.mkdir(parents=True, exist_ok=True)
    layouts.prepare(ladder.WORK, ladder.ROOT / "tests/assets/corpus/train.jsonl")
    rungs = [rung for rung in layouts.RUNGS if rung.ranks <= arguments.ranks
             and (not arguments.experts or set(rung.models) & set(MIXTURES))]
    num_wrong, num_refused = 0, 0
    for number in range(arguments.draws):
        combination = Combination.draw(chance, rungs)
        print(f"{number}: {combination}", flush=True)
        folder = ladder.WORK / f"combination-{arguments.seed}-{number}"
        try:
            problems = combination.problems(folder)
        except ladder.Refused as refused:
            num_refused += 1
            print("    refused:", next(line for line in str(refused).splitlines() if "error: " in line))
            problems = []
        except RuntimeError as error:
            problems = [str(error)]
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        for problem in problems:
            print("    WRONG", problem, flush=True)
        num_wrong += bool(problems)
    print(f"{arguments.draws} combinations, {num_refused} refused, {num_wrong} wrong")
    return 1 if num_wrong or num_refused == arguments.draws else 0


if __name__ == "__main__":
    sys.exit(main())
