"""Compares the order of two stages with the reverse and with random order. Usage: experiments/tools/study.py."""

import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from study import Run, Study, shown  # noqa: E402

SEEDS = (42, 43, 44)
ORDERS = {"devil last": "as_listed", "mixed": "mixed", "devil first": "reversed"}
SOURCES = ("devil", "jargon")
FREQUENCY = 20

study = Study(__file__)
held_out = pathlib.Path("outputs/curriculum")  # below the root, where runs start
if study.trains:
    (study.root / held_out).mkdir(parents=True, exist_ok=True)
    lines = (study.root / "tests/assets/corpus/validation.jsonl").read_text().splitlines(keepends=True)
    for source in SOURCES:
        (study.root / held_out / f"{source}.jsonl").write_text("".join(line for line in lines if json.loads(line)["source"] == source))


def validated(_, lines):
    number = "validation_metrics/loss"
    return {"curve": [[line["step"], round(line[number], 4)] for line in lines if number in line]}


for seed in SEEDS:
    study.run([Run(f"{name}, {source}", seed,
                   ["--dataset.maintainers/stages.order", order, "--validation.enable", "--validation.dataset", "jsonl",
                    "--validation.dataset_path", held_out / f"{source}.jsonl", "--validation.freq", FREQUENCY, "--validation.seq_len", 64,
                    "--validation.local_batch_size", 32, "--validation.steps", 5])
               for name, order in ORDERS.items() for source in SOURCES], validated)

rows = [([name, source], f"{name}, {source}") for source in SOURCES for name in ORDERS]
study.write("losses", study.table(rows, head=("order", "validation text"), number="validation"))
gaps = []
for source in SOURCES:
    for name in ("devil last", "devil first"):
        values = [a["validation"] - b["validation"] for a, b in
                  zip(study.of(f"{name}, {source}"), study.of(f"mixed, {source}"), strict=True)]
        gaps.append(f"- {name} minus mixed, validation on {source}, seed by seed: {shown(values)}")
study.write("gaps", "\n".join(gaps))


def draw(axes):
    for axis, source in zip(axes, SOURCES, strict=True):
        for name in ORDERS:
            records = study.of(f"{name}, {source}")
            points = [dict(map(tuple, record["curve"])) for record in records]
            steps = sorted(points[0])[1:]  # without the loss of the initial weights
            axis.plot(steps, [statistics.fmean(point[step] for point in points) for step in steps], linewidth=1.4, label=name)
            axis.fill_between(steps, [min(point[step] for point in points) for step in steps],
                              [max(point[step] for point in points) for step in steps], alpha=0.15, linewidth=0)
        axis.set_xlabel("step")
        axis.set_ylabel("validation loss (nats per token)")
        axis.set_title(f"validation on {source}", fontsize=10)
        axis.legend(fontsize=8)


study.figure("curve.svg", draw, columns=2)
study.save_readme()
