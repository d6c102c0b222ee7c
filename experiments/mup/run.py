"""Sweeps learning rates over widths under both parametrisations, and checks coordinates. Usage: experiments/tools/study.py."""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from study import Run, Study, interval, shown  # noqa: E402

BASE = 64
WIDTHS = (64, 128, 256, 512)  # the widest with the first seed only
RATES = (0.00125, 0.0025, 0.005, 0.01, 0.02, 0.04)
SEEDS = (42, 43, 44)
STEPS = 150
KINDS = ("standard", "mup")
CHECKED = "activations/rms/layers.1.feed_forward"  # of the coordinate check
CHECK_STEPS, CHECK_RATE = 10, 0.01


def name_of(kind, width, rate):
    return f"{kind} {width} {rate:g}"


def flags(kind, width, rate):
    """At the base width both parametrisations are the same model with the same learning rates."""
    scale = BASE / width if kind == "mup" else 1
    base = ["--model.base_dim", BASE] if kind == "mup" else ["--model.base_dim", width, "--model.base_head_dim", width // 4]
    return ["--model.dim", width, *base, "--optimizer.lr", f"{rate:g}", "--optimizer.groups.hidden.lr", f"{rate * scale:g}"]


def check_flags(kind, width):
    return [*flags(kind, width, CHECK_RATE), "--training.steps", CHECK_STEPS, "--lr_scheduler.warmup_steps", 0,
            "--lr_scheduler.decay_ratio", 0, "--metrics.loggers", "jsonl,activation_statistics",
            "--logger.activation_statistics.every", 1]


def checked(_, lines):
    return {"rms": {line["step"]: round(line[CHECKED], 5) for line in lines if CHECKED in line}}


study = Study(__file__)
for seed in SEEDS:
    study.run([Run(f"check {kind} {width}", seed, check_flags(kind, width)) for kind in KINDS for width in WIDTHS], checked)
for seed in SEEDS:
    widths = WIDTHS if seed == SEEDS[0] else WIDTHS[:-1]
    study.run([Run(name_of(kind, width, rate), seed, [*flags(kind, width, rate), "--training.steps", STEPS])
               for width in widths for kind in KINDS for rate in RATES if kind == "mup" or width > BASE])


def final(kind, width, rate):
    return study.final(name_of(kind if width > BASE else "mup", width, rate))


def best_rate(kind, width):
    return min(RATES, key=lambda rate: statistics.fmean(final(kind, width, rate)))


def sweep_table():
    lines = ["| parametrisation | width | " + " | ".join(f"lr {rate:g}" for rate in RATES) + " |", "|---" * (len(RATES) + 2) + "|"]
    for kind in KINDS:
        for width in WIDTHS:
            best = best_rate(kind, width)
            cells = [f"**{shown(final(kind, width, rate))}**" if rate == best else shown(final(kind, width, rate)) for rate in RATES]
            lines.append(f"| {kind} | {width} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def transfer_table():
    """What the base width's best rate costs at each width: its loss minus the least loss, seed by seed."""
    tuned = best_rate("mup", BASE)
    lines = ["| width | parametrisation | best lr | loss at the best lr | loss at the base's best lr | cost of not tuning |", "|---" * 6 + "|"]
    for width in WIDTHS[1:]:
        for kind in KINDS:
            best = best_rate(kind, width)
            costs = [a - b for a, b in zip(final(kind, width, tuned), final(kind, width, best), strict=True)]
            lines.append(f"| {width} | {kind} | {best:g} | {shown(final(kind, width, best))} | {shown(final(kind, width, tuned))} | "
                         f"{shown(costs)} |")
    return "\n".join(lines)


def check_table():
    lines = ["| parametrisation | " + " | ".join(f"width {width}" for width in WIDTHS) + " |", "|---" * (len(WIDTHS) + 1) + "|"]
    for kind in KINDS:
        values = [[record["rms"][str(CHECK_STEPS)] for record in study.of(f"check {kind} {width}")] for width in WIDTHS]
        lines.append(f"| {kind} | " + " | ".join(shown(of_width) for of_width in values) + " |")
    return "\n".join(lines)


def draw_sweep(axes):
    for axis, kind in zip(axes, KINDS, strict=True):
        for width in WIDTHS:
            points = [interval(final(kind, width, rate)) for rate in RATES]
            axis.errorbar(RATES, [mean for mean, _ in points], [half for _, half in points], marker="o", markersize=3, linewidth=1.3,
                          capsize=2, label=f"width {width}")
        axis.axvline(best_rate("mup", BASE), color="grey", linestyle=":", linewidth=1)
        axis.set_xscale("log", base=2)
        axis.set_xticks(RATES, [f"{rate:g}" for rate in RATES], fontsize=7)
        axis.set_xlabel("learning rate")
        axis.set_ylabel(f"training loss, last 50 of {STEPS} steps")
        axis.set_title("standard" if kind == "standard" else "muP", fontsize=10)
        axis.legend(fontsize=7)
    low = min(axis.get_ylim()[0] for axis in axes)
    high = max(axis.get_ylim()[1] for axis in axes)
    for axis in axes:
        axis.set_ylim(low, high)


def draw_check(axes):
    for axis, kind in zip(axes, KINDS, strict=True):
        for width in WIDTHS:
            records = study.of(f"check {kind} {width}")
            steps = range(1, CHECK_STEPS + 1)
            axis.plot(steps, [statistics.fmean(record["rms"][str(step)] for record in records) for step in steps], marker="o", markersize=3,
                      linewidth=1.3, label=f"width {width}")
        axis.set_yscale("log")
        axis.set_xlabel(f"step, at lr {CHECK_RATE:g}")
        axis.set_ylabel("rms of the last feed-forward")
        axis.set_title("standard" if kind == "standard" else "muP", fontsize=10)
        axis.legend(fontsize=7)
    low = min(axis.get_ylim()[0] for axis in axes)
    high = max(axis.get_ylim()[1] for axis in axes)
    for axis in axes:
        axis.set_ylim(low, high)


study.figure("sweep.svg", draw_sweep, columns=2)
study.figure("coordinates.svg", draw_check, columns=2)
study.write("sweep", sweep_table())
study.write("transfer", transfer_table())
study.write("coordinates", check_table())
study.save_readme()
