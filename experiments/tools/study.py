"""Runs the trainings of an experiment and writes its results: results.json, curves as SVG, and tables in README.md. An experiment's run.py
declares its runs and calls this module:

    study = Study(__file__)
    study.run([Run("AdamW", seed, ["--optimizer.lr", "1e-2"]) for seed in SEEDS])
    study.draw("curve.svg", {"AdamW": study.of("AdamW")})
    study.write("losses", study.table([(["AdamW"], "AdamW")]))
    study.save_readme()

    python3 experiments/NAME/run.py --titan PREFIX/bin/titan --plugins experiments/NAME/build/lib/titan/plugins     # runs and writes
    python3 experiments/NAME/run.py --figures                                   # writes again from results.json, without training
    python3 experiments/NAME/run.py --check                                     # fails if README.md or an SVG differ from results.json

A run whose arguments are unchanged is not repeated. An interval is that of Student's t distribution, 95 %, over the seeds. Needs
matplotlib and scipy.
"""

import argparse
import concurrent.futures
import dataclasses
import io
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading

BIN = 10  # steps that one point of a stored curve averages
LAST = 50  # steps that a final loss averages
LOSS = "loss_metrics/global_avg_loss"


@dataclasses.dataclass
class Run:
    """One training: `arguments` of `titan train` in addition to the recipe, and `ranks` under `titan launch`."""
    name: str
    seed: int
    arguments: list
    ranks: int = 1

    @property
    def key(self):
        return f"{self.name}/{self.seed}"


def interval(values):
    """Mean and half the width of its 95 % t-interval; the half width of one value is NaN."""
    from scipy import stats
    mean, n = statistics.fmean(values), len(values)
    if n < 2:
        return mean, math.nan
    return mean, float(stats.t.ppf(0.975, n - 1)) * statistics.stdev(values) / math.sqrt(n)


def shown(values, digits=3):
    """'5.237 ± 0.021', over seeds."""
    mean, half = interval(values)
    return f"{mean:.{digits}f}" if math.isnan(half) else f"{mean:.{digits}f} ± {half:.{digits}f}"


def curve_of(lines, number=LOSS):
    """[step, mean of `number`] of each bin of BIN steps; the step is the last one of the bin."""
    bins = {}
    for line in lines:
        if number in line:
            bins.setdefault(math.ceil(line["step"] / BIN) * BIN, []).append(line[number])
    return [[step, round(statistics.fmean(values), 4)] for step, values in sorted(bins.items())]


def record_of(lines):
    """What results.json holds of a run. A loss that is not finite is recorded as null."""
    losses = [line[LOSS] for line in lines if LOSS in line]
    final = statistics.fmean(losses[-LAST:])
    record = {"steps": len(losses), "first": round(losses[0], 4), "final": round(final, 4) if math.isfinite(final) else None,
              "curve": curve_of(lines)}
    validated = [line["validation_metrics/loss"] for line in lines if "validation_metrics/loss" in line]
    return record | ({"validation": round(validated[-1], 4)} if validated else {})


class Study:
    def __init__(self, script, recipe="train.toml", describe=__doc__):
        self.folder = pathlib.Path(script).resolve().parent
        self.root = self.folder.parents[1]
        self.recipe = self.folder / recipe
        parser = argparse.ArgumentParser(description=describe, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--titan", default="titan", help="the installed program")
        parser.add_argument("--plugins", default=str(self.folder / "build/lib/titan/plugins"), help="folder of the built plugin")
        parser.add_argument("--jobs", type=int, default=2, help="runs at the same time, each with one thread")
        parser.add_argument("--outputs", default=str(self.root / "outputs" / self.folder.name), help="folder of the runs")
        parser.add_argument("--figures", action="store_true", help="write from results.json, without training")
        parser.add_argument("--check", action="store_true", help="fail if README.md or an SVG differ from results.json")
        self.flags = parser.parse_args()
        self.lock = threading.Lock()
        self.store = self.folder / "results.json"
        self.records = json.loads(self.store.read_text()) if self.store.exists() else {}
        self.readme = (self.folder / "README.md").read_text() if (self.folder / "README.md").exists() else ""
        self.outdated = []

    @property
    def trains(self):
        return not (self.flags.figures or self.flags.check)

    def run(self, runs, collect=None):
        """Trains each run that results.json lacks. `collect(folder, lines)` returns further numbers for the record of a run."""
        runs = [run for run in runs if self.records.get(run.key, {}).get("arguments") != self.words(run)]
        if runs and not self.trains:
            sys.exit(f"{self.store} lacks {len(runs)} runs, such as {runs[0].key}: start this script without --figures and --check")
        with concurrent.futures.ThreadPoolExecutor(self.flags.jobs) as pool:
            for _ in pool.map(lambda run: self.train(run, collect), runs):
                pass

    def words(self, run):
        return [*(["--nproc", str(run.ranks)] if run.ranks > 1 else []), *map(str, run.arguments)]

    def train(self, run, collect):
        out = pathlib.Path(self.flags.outputs) / run.key.replace(" ", "_")
        subprocess.run(["rm", "-rf", out], check=True)
        launch = ["launch", "--nproc", str(run.ranks), "--"] if run.ranks > 1 else []
        command = [self.flags.titan, *launch, "train", "--job.config_file", self.recipe, "--plugins.paths", self.flags.plugins,
                   "--job.dump_folder", out, "--debug.seed", run.seed, *run.arguments]
        done = subprocess.run([str(part) for part in command], cwd=self.root, env=os.environ | {"OMP_NUM_THREADS": "1"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))} exited with {done.returncode}\n{done.stderr[-2000:]}")
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        record = {"arguments": self.words(run), **record_of(lines), **(collect(out, lines) if collect else {})}
        with self.lock:
            self.records[run.key] = record
            self.save()
        print(f"{run.key}: {record['first']} -> {record['final']}", flush=True)

    def save(self):
        rows = [f"{json.dumps(key)}: {json.dumps(self.records[key])}" for key in sorted(self.records)]
        self.store.write_text("{\n" + ",\n".join(rows) + "\n}\n")

    def of(self, name):
        """The records of a run, one for each seed, by seed."""
        found = {int(key.rpartition("/")[2]): record for key, record in self.records.items() if key.rpartition("/")[0] == name}
        return [found[seed] for seed in sorted(found)]

    def final(self, name):
        """Its final losses; a run that diverged counts as infinite."""
        return [math.inf if record["final"] is None else record["final"] for record in self.of(name)]

    def best(self, names):
        """The name with the lowest mean of final losses."""
        return min(names, key=lambda name: statistics.fmean(self.final(name)))

    def table(self, rows, head=("run",), number="final", unit="loss"):
        """A row for each (cells, name) of the list `rows`: the number of each seed, then mean and interval."""
        count = max(len(self.of(name)) for _, name in rows)
        lines = ["| " + " | ".join([*head, *(f"seed {i + 1}" for i in range(count)), f"{unit}, mean and 95 % interval"]) + " |",
                 "|---" * (len(head) + count + 1) + "|"]
        for cells, name in rows:
            values = [record[number] for record in self.of(name)]
            texts = ["diverged" if value is None else f"{value:.3f}" for value in values]
            mean = "diverged" if None in values else shown(values)
            lines.append("| " + " | ".join([*cells, *texts, *[""] * (count - len(texts)), mean]) + " |")
        return "\n".join(lines)

    def draw(self, name, curves, ylabel="training loss (nats per token)", title=""):
        """`curves`: label to records; the line is the mean over the records, the band from the lowest to the highest."""
        def plot(axis):
            for label, records in curves.items():
                points = [dict(map(tuple, record["curve"])) for record in records]
                steps = sorted(set.intersection(*map(set, points)))
                columns = [[point[step] for point in points] for step in steps]
                line, = axis.plot(steps, [statistics.fmean(column) for column in columns], linewidth=1.4, label=label)
                axis.fill_between(steps, [min(c) for c in columns], [max(c) for c in columns], color=line.get_color(), alpha=0.15, linewidth=0)
            axis.set_xlabel("step")
            axis.set_ylabel(ylabel)
            axis.set_title(title, fontsize=10)
            axis.legend(fontsize=8)
        self.figure(name, plot)

    def figure(self, name, plot, columns=1):
        """Writes NAME, an SVG; plot(axis), or plot(axes) for several columns, draws it. The same numbers give the same bytes."""
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        matplotlib.rcParams.update({"svg.hashsalt": "titan", "svg.fonttype": "none", "path.simplify": False})
        figure, axes = plt.subplots(1, columns, figsize=(6.4 if columns == 1 else 4.4 * columns, 3.4))
        for axis in axes if columns > 1 else [axes]:
            axis.grid(alpha=0.3)
        plot(axes)
        figure.tight_layout()
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
        self.put(self.folder / name, re.sub(r"[ \t]+$", "", text.getvalue(), flags=re.M))

    def write(self, block, text):
        """Replaces the lines between <!-- BLOCK, written by run.py --> and <!-- end --> in README.md."""
        begin = f"<!-- {block}, written by run.py -->"
        pattern = re.compile(re.escape(begin) + r".*?<!-- end -->", re.S)
        if not pattern.search(self.readme):
            raise RuntimeError(f"{self.folder}/README.md lacks the lines '{begin}' and '<!-- end -->'")
        self.readme = pattern.sub(lambda _: f"{begin}\n{text}\n<!-- end -->", self.readme)

    def save_readme(self):
        """[last] Writes README.md; with --check it fails if that or a figure has changed."""
        self.put(self.folder / "README.md", self.readme)
        if self.flags.check and self.outdated:
            sys.exit(f"not what results.json gives: {', '.join(self.outdated)}; start this script with --figures")

    def put(self, path, text):
        if self.flags.check:
            if not path.exists() or path.read_text() != text:
                self.outdated.append(path.name)
        else:
            path.write_text(text)
