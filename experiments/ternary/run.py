"""Compares ternary weights with float32 and bfloat16 at tuned learning rates, and counts zeros. Usage: experiments/tools/study.py."""

import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from study import Run, Study, shown  # noqa: E402

SEEDS = (42, 43, 44)
RATES = (3e-3, 1e-2, 3e-2)
STEPS = 200
PLAIN = ["--model.converters", ""]
KINDS = {
    "float32": PLAIN,
    "bfloat16": [*PLAIN, "--training.mixed_precision_param", "bfloat16"],
    "ternary weights": ["--converter.maintainers/ternary.no_quantize_inputs"],
    "ternary weights, 8-bit inputs": [],
}
STORED = ["--checkpoint.enable", "--checkpoint.interval", 10**6]


def zeros(out, _):
    """The share of zeros in each converted weight, from the checkpoint, by the formula of the paper."""
    from safetensors import safe_open
    found = {}
    for path in sorted((out / f"checkpoint/step-{STEPS}").glob("*.safetensors")):
        with safe_open(path, "numpy") as file:
            for name in file.keys():
                if re.fullmatch(r"layers\..*\.w.\.weight", name):
                    weight = abs(file.get_tensor(name).astype("float64"))
                    found[name.removesuffix(".weight")] = round(float((weight < 0.5 * weight.mean()).mean()), 4)
    return {"zeros": found}


study = Study(__file__)
for kind, flags in KINDS.items():
    study.run([Run(f"{kind} {rate:g}", SEEDS[0], [*flags, "--optimizer.lr", f"{rate:g}", *STORED]) for rate in RATES], zeros)
best = {kind: min(RATES, key=lambda rate: study.final(f"{kind} {rate:g}")[0]) for kind in KINDS}
names = {kind: f"{kind} {rate:g}" for kind, rate in best.items()}
for kind, flags in KINDS.items():
    study.run([Run(names[kind], seed, [*flags, "--optimizer.lr", f"{best[kind]:g}", *STORED]) for seed in SEEDS], zeros)

grid = ["| run | " + " | ".join(f"lr {rate:g}" for rate in RATES) + " |", "|---" * (len(RATES) + 1) + "|"]
for kind in KINDS:
    losses = {rate: study.final(f"{kind} {rate:g}")[0] for rate in RATES}
    grid.append(f"| {kind} | " + " | ".join(f"**{loss:.3f}**" if rate == best[kind] else f"{loss:.3f}" for rate, loss in losses.items()) + " |")
study.write("grid", "\n".join(grid))
study.write("losses", study.table([([kind, f"{best[kind]:g}"], names[kind]) for kind in KINDS], head=("run", "lr")))
gaps = {kind: [a - b for a, b in zip(study.final(names[kind]), study.final(names["float32"]), strict=True)] for kind in list(KINDS)[1:]}
study.write("gaps", "\n".join(f"- {kind} minus float32, seed by seed: {shown(values)}" for kind, values in gaps.items()))
rows = ["| weight | zeros, ternary weights | zeros, ternary weights and 8-bit inputs | float32 run, same rule |", "|---|---|---|---|"]
columns = [study.of(names[kind]) for kind in ("ternary weights", "ternary weights, 8-bit inputs", "float32")]
for weight in sorted(columns[0][0]["zeros"]):
    rows.append(f"| `{weight}` | " + " | ".join(f"{statistics.fmean(record['zeros'][weight] for record in records):.1%}" for records in columns) + " |")
study.write("zeros", "\n".join(rows))
study.draw("curve.svg", {f"{kind}, lr {best[kind]:g}": study.of(names[kind]) for kind in KINDS})
study.save_readme()
