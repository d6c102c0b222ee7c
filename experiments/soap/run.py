"""Tunes AdamW, Muon and SOAP and compares them at their best learning rates. Usage: experiments/tools/study.py."""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from study import Run, Study, shown  # noqa: E402

SEEDS = (42, 43, 44)
FACTOR = 3  # between the rates of a grid
OPTIMIZERS = {  # flags, and the rates to begin with
    "AdamW": (["--optimizer.name", "AdamW"], [3e-3, 1e-2, 3e-2]),
    "Muon": (["--optimizer.name", "Muon", "--optimizer.adamw_lr", "1e-2"], [3e-3, 1e-2, 3e-2]),
    "SOAP": ([], [1e-3, 3e-3, 1e-2]),
}


def shares(_, lines):
    """The optimizer's median share of the time of a step."""
    own, whole = "time_metrics/optimizer(s)", ("time_metrics/forward(s)", "time_metrics/backward(s)", "time_metrics/optimizer(s)")
    return {"optimizer_share": round(statistics.median(line[own] / sum(line[part] for part in whole) for line in lines), 3)}


def run(name, rate, seeds):
    study.run([Run(f"{name} {rate:g}", seed, [*OPTIMIZERS[name][0], "--optimizer.lr", f"{rate:g}"]) for seed in seeds], shares)


def tune(name):
    """The best rate of a grid that is extended until the best is inside it; with the first seed."""
    rates = list(OPTIMIZERS[name][1])
    while True:
        for rate in rates:
            run(name, rate, SEEDS[:1])
        best = min(rates, key=lambda rate: study.final(f"{name} {rate:g}")[0])
        if best == rates[0]:
            rates.insert(0, float(f"{rates[0] / FACTOR:.0e}"))
        elif best == rates[-1]:
            rates.append(float(f"{rates[-1] * FACTOR:.0e}"))
        else:
            return rates, best


study = Study(__file__)
tuned = {name: tune(name) for name in OPTIMIZERS}
for name, (_, best) in tuned.items():
    run(name, best, SEEDS)

grid = ["| optimizer | learning rate: loss with seed 42 |", "|---|---|"]
for name, (rates, best) in tuned.items():
    cells = [(f"**{rate:g}: {study.final(f'{name} {rate:g}')[0]:.3f}**" if rate == best else
              f"{rate:g}: {study.final(f'{name} {rate:g}')[0]:.3f}") for rate in rates]
    grid.append(f"| {name} | {', '.join(cells)} |")
study.write("grid", "\n".join(grid))

best_runs = {name: f"{name} {best:g}" for name, (_, best) in tuned.items()}
study.write("losses", study.table([([name, f"{tuned[name][1]:g}"], best_runs[name]) for name in OPTIMIZERS], head=("optimizer", "lr")))
gaps = {name: [a - b for a, b in zip(study.final(best_runs[name]), study.final(best_runs["SOAP"]), strict=True)] for name in ("AdamW", "Muon")}
share = {name: statistics.median(record["optimizer_share"] for record in study.of(best_runs[name])) for name in OPTIMIZERS}
study.write("gaps", "\n".join([f"- loss of {name} minus loss of SOAP, seed by seed: {shown(values)}" for name, values in gaps.items()] +
                              [f"- median share of the optimizer in the time of a step: {', '.join(f'{name} {value:.0%}' for name, value in share.items())}"]))
study.draw("curve.svg", {f"{name}, lr {best:g}": study.of(best_runs[name]) for name, (_, best) in tuned.items()})
study.save_readme()
