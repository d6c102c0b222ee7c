"""titan sweep: checks all combinations first, trains the missing runs, survives stops and failures, and compares the cases.
Intervals and tables are compared with SciPy and NumPy, the array script is run by stand-ins for Slurm's programs."""

import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

from harness import HANG, ROOT, TITAN, Background, Case, environment, losses, main, thorough, titan

LOSS = "loss_metrics/global_avg_loss"


class SweepCase(Case):
    def sweep_file(self, text="", seeds=(1, 2), steps=2, **keys):
        """A sweep of the debug model; `text` follows the keys of [fixed]."""
        lines = [f"{key} = {json.dumps(value)}" for key, value in
                 {"config": str(ROOT / "train_configs/debug_model.toml"), "folder": str(self.out), "seeds": list(seeds), **keys}.items()]
        fixed = ["[fixed]", f"training.steps = {steps}", "training.seq_len = 64", "metrics.enable_tensorboard = false",
                 "model.dim = 64", "model.n_layers = 2", "model.n_heads = 4"]
        return self.write("lr.toml", "\n".join([*lines, *fixed, text]) + "\n")

    def sweep(self, file, *flags, code=0, **env):
        run = titan("sweep", file, *flags, **env)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run

    def planned(self, file):
        return json.loads(self.sweep(file, "--dry-run", "--json").stdout)

    def result(self):
        return json.loads((self.out / "sweep.json").read_text())

    def table(self):
        with open(self.out / "sweep.csv", newline="") as file:
            return list(csv.DictReader(file))


class SweepTest(SweepCase):
    def test_trains_each_seed_once_and_compares_the_cases(self):
        file = self.sweep_file()
        first = self.sweep(file)
        self.assertEqual(first.stderr.count("starting: "), 2)
        (case,) = self.result()["cases"]
        values = [losses(run["folder"])[-1] for run in case["runs"]]
        self.assertEqual([run["value"] for run in case["runs"]], values)
        self.assertNotEqual(values[0], values[1])  # the seed counts
        mean = sum(values) / 2
        self.assertAlmostEqual(case["mean"], mean, places=12)
        # of two values: t = 12.7062 of one degree of freedom (any table of Student's t), s / √2 = |a - b| / 2
        self.assertAlmostEqual(case["half_width_95"] / (12.706204736 * abs(values[0] - values[1]) / 2), 1, places=9)
        self.assertEqual(float(self.table()[0]["mean"]), case["mean"])
        self.assertIn(f"{mean:.6g}", (self.out / "sweep.md").read_text())
        plot = xml.parse(self.out / "sweep.svg").getroot()
        self.assertEqual(len(plot.findall("{http://www.w3.org/2000/svg}circle")), 2)

        times = {path: path.stat().st_mtime_ns for path in self.out.rglob("metrics.jsonl")}
        again = self.sweep(file)
        self.assertNotIn("starting", again.stderr)
        self.assertEqual(again.stdout, first.stdout)
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.out.rglob("metrics.jsonl")}, times)

    def test_reports_all_mistakes_of_the_file_with_their_places(self):
        file = self.write("wrong.toml", 'sedes = [1]\nparallel = 0\nreduce = "median"\n[grid]\noptimizer.lr = [1]\n'
                          '[[case]]\ndebug.seed = 3\n[[case]]\nname = "a"\n[[case]]\nname = "a"\n')
        run = self.sweep(file, code=2)
        self.assert_holds(run.stderr, "wrong.toml:1:1: error: unknown key 'sedes' of a sweep", "did you mean 'seeds'?",
                          "wrong.toml:2:12: error: 'parallel' must be an integer > 0, got 0", "'last', 'mean', 'min' or 'max', got median",
                          "unknown section [grid]", "write [[grid]]", "'debug.seed' is set by the sweep", "two cases 'a'",
                          "6 errors; nothing was started")

    def test_checks_every_combination_before_the_first_starts(self):
        file = self.sweep_file("[[grid]]\noptimizer.lr = [1e-3, -1]\n", seeds=[1])
        run = self.sweep(file, code=2)
        self.assert_holds(run.stderr, "1 of 2 runs cannot start; nothing was started", "optimizer.lr = -1, seed 1", "must be > 0, got -1")
        self.assertEqual(list(self.out.rglob("metrics.jsonl")), [])


@thorough
class SweepsAtLength(SweepCase):
    def made_up_runs(self, file, values):
        """Writes the record of a finished run with `values(run)` as losses, without training."""
        for run in self.planned(file):
            folder = pathlib.Path(run["folder"])
            folder.mkdir(parents=True)
            (folder / "config.toml").write_text(titan(*run["arguments"], "--dry-run").stdout)
            (folder / "metrics.jsonl").write_text("".join(
                json.dumps({"step": step, LOSS: value}) + "\n" for step, value in enumerate(values(run), 1)))
            (folder / "history.jsonl").write_text('{"event":"end","time":1,"step":2,"outcome":"finished"}\n')

    def test_interval_and_table_equal_those_of_scipy(self):
        import numpy
        from scipy import stats
        chance = self.chance()
        grid = '[[grid]]\noptimizer.lr = [1e-3, 1e-2]\nlr_scheduler.warmup_steps = [0]\n[[case]]\nname = "a, \\"b\\" | c"\ntraining.max_norm = 2\n'
        drawn = {}

        def values(run):
            return drawn.setdefault((run["case"], run["seed"]), [chance.uniform(1, 9) for _ in range(5)])
        self.made_up_runs(self.sweep_file(grid, seeds=[3, 5, 7]), values)
        for reduce, of in {"last": lambda v: v[-1], "mean": lambda v: numpy.mean(v[-3:]), "min": min, "max": max}.items():
            run = self.sweep(self.sweep_file(grid, seeds=[3, 5, 7], reduce=reduce, last_steps=3), "--collect", "--json")
            self.assertEqual(json.loads(run.stdout), self.result())
            cases, rows = self.result()["cases"], self.table()
            self.assertEqual(len(cases), 3)
            for case, row in zip(cases, rows):
                scores = [of(drawn[case["case"], seed]) for seed in (3, 5, 7)]
                low, high = stats.t.interval(0.95, len(scores) - 1, loc=numpy.mean(scores), scale=stats.sem(scores))
                for key, expected in {"mean": numpy.mean(scores), "low_95": low, "high_95": high, "half_width_95": (high - low) / 2,
                                      "lowest": min(scores), "highest": max(scores)}.items():
                    self.assertAlmostEqual(case[key] / expected, 1, places=10)
                    self.assertEqual(float(row[key]), case[key])
                self.assertEqual(row["case"], case["case"])
            self.assertEqual([row["optimizer.lr"] for row in rows], ["0.001", "0.01", ""])
            markdown = [re.split(r"(?<!\\)\|", line)[1:-1] for line in (self.out / "sweep.md").read_text().splitlines() if line.startswith("|")]
            self.assertEqual([len(row) for row in markdown], [8] * 5)
            self.assert_plot_shows(cases)

    def assert_plot_shows(self, cases):
        """The x of all marks is one linear function of their values, whose ticks are labelled."""
        import numpy
        svg = "{http://www.w3.org/2000/svg}"
        plot = xml.parse(self.out / "sweep.svg").getroot()
        marks = {kind: [line for line in plot.iter(f"{svg}line") if line.get("class") == kind] for kind in ("grid", "interval", "mean")}
        ticks = [text for text in plot.iter(f"{svg}text") if re.fullmatch(r"-?[0-9.e+-]+", text.text)]
        slope, offset = numpy.polyfit([float(t.text) for t in ticks], [float(t.get("x")) for t in ticks], 1)
        xs = [float(line.get("x1")) for line in marks["mean"]]
        numpy.testing.assert_allclose(xs, [slope * case["mean"] + offset for case in cases], atol=0.01)
        for end, key in {"x1": "low_95", "x2": "high_95"}.items():
            numpy.testing.assert_allclose([float(line.get(end)) for line in marks["interval"]],
                                          [slope * case[key] + offset for case in cases], atol=0.01)
        dots = [float(dot.get("cx")) for dot in plot.iter(f"{svg}circle")]
        numpy.testing.assert_allclose(dots, [slope * run["value"] + offset for case in cases for run in case["runs"]], atol=0.01)

    def test_runs_that_diverged_are_counted_and_left_out(self):
        file = self.sweep_file(seeds=[1, 2, 3])
        self.made_up_runs(file, lambda run: ["nan"] if run["seed"] == 2 else [run["seed"]])
        self.sweep(file, "--collect")
        (case,) = self.result()["cases"]
        self.assertEqual((case["mean"], case["seeds"], case["diverged"], case["not_finished"]), (2, 2, 1, 0))

    def test_an_unknown_metric_names_the_nearest_tag(self):
        file = self.sweep_file(seeds=[1], metric="loss_metrics/global_avg_los")
        self.made_up_runs(file, lambda run: [1])
        self.assert_holds(self.sweep(file, "--collect", code=2).stderr, f"did you mean '{LOSS}'?")

    def test_a_changed_recipe_is_another_run(self):
        first = self.planned(self.sweep_file(seeds=[1]))
        second = self.planned(self.sweep_file(seeds=[1], steps=3))
        self.assertNotEqual(first[0]["folder"], second[0]["folder"])
        self.assertEqual(self.planned(self.sweep_file(seeds=[1])), first)

    def test_two_cases_with_one_configuration_are_refused(self):
        file = self.sweep_file('[[case]]\nname = "a"\n[[case]]\nname = "b"\noptimizer.lr = 8e-4\n', seeds=[1])
        self.assert_holds(self.sweep(file, code=2).stderr, "resolve to the same configuration: 'a, seed 1' and 'b, seed 1'")

    def wait_for(self, condition, sweep=None):
        limit = time.monotonic() + HANG
        while not condition():
            if sweep and sweep.process.poll() is not None:
                self.fail(f"the sweep has ended: {sweep.finish()}")
            self.assertLess(time.monotonic(), limit, "it never happened")
            time.sleep(0.01)

    def stop(self, number):
        """Starts a sweep of two long runs side by side, waits until both train, sends the signal; the sweep, its output."""
        file = self.sweep_file("checkpoint.enable = true\ncheckpoint.interval = 20\n", steps=300, parallel=2)
        with Background("sweep", str(file)) as sweep:
            self.wait_for(lambda: len([path for path in self.out.rglob("metrics.jsonl") if path.read_text().count("\n") >= 2]) == 2, sweep)
            sweep.process.send_signal(number)
            out, err, code = sweep.finish()
        return file, err, code

    def assert_resumed(self, file):
        """The rest is trained, and all losses are those of runs that nobody stopped."""
        self.sweep(file)
        stopped = {run["seed"]: losses(run["folder"]) for run in self.result()["cases"][0]["runs"]}
        shutil.rmtree(self.out)
        self.sweep(file)
        self.assertEqual({run["seed"]: losses(run["folder"]) for run in self.result()["cases"][0]["runs"]}, stopped)

    def test_a_stop_reaches_the_runs_which_resume(self):
        for number, expected in ((signal.SIGTERM, 75), (signal.SIGINT, 130)):
            with self.subTest(signal=number):
                file, err, code = self.stop(number)
                self.assertEqual(code, expected, err)
                self.assert_holds(err, f"stopped by {number.name} with 2 runs left", f"ended with exit code {expected}")
                self.assertEqual({run["state"] for run in self.planned(file)}, {"partial"})
                logs = "".join(path.read_text() for path in (self.out / "logs").iterdir())
                self.assertIn("which is saved", logs)
                self.assert_resumed(file)
                self.assertEqual(len(list(self.out.glob("runs/*"))), 2)
                shutil.rmtree(self.out)

    def test_a_killed_sweep_leaves_no_run_behind_and_resumes(self):
        file, err, code = self.stop(signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        self.wait_for(lambda: not any(str(self.out) in path.read_text(errors="replace")
                                      for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)))
        self.assertEqual({run["state"] for run in self.planned(file)}, {"partial"})
        self.assert_resumed(file)

    def test_a_failed_run_is_trained_again_and_the_others_count(self):
        file = self.sweep_file(seeds=[1, 2])
        blocked = pathlib.Path(self.planned(file)[0]["folder"])
        blocked.parent.mkdir(parents=True)
        blocked.write_text("not a folder")
        run = self.sweep(file, code=1)
        self.assert_holds(run.stderr, "ended with exit code", "1 of 2 runs have not finished")
        self.assertEqual((self.table()[0]["seeds"], self.table()[0]["not_finished"], self.table()[0]["half_width_95"]), ("1", "1", ""))
        blocked.unlink()
        self.assertEqual(self.sweep(file).stderr.count("starting: "), 1)
        self.assertEqual(self.table()[0]["seeds"], "2")

    def test_one_sweep_at_a_time_works_in_a_folder(self):
        file = self.sweep_file(steps=100_000)
        with Background("sweep", str(file)) as sweep:
            self.wait_for(lambda: list(self.out.rglob("metrics.jsonl")), sweep)
            self.assert_holds(self.sweep(file, code=1).stderr, "another titan sweep works in")
            sweep.process.send_signal(signal.SIGINT)
            sweep.finish()

    def test_runs_of_several_ranks_are_launched(self):
        self.sweep(self.sweep_file(seeds=[1], ranks=2))
        self.assertEqual(self.result()["cases"][0]["seeds"], 1)
        self.assertIn("[rank1]", "".join(path.read_text() for path in self.out.rglob("launch_logs/*/rank1.log")))

    STAND_INS = {
        # runs each task of the array at once
        "sbatch": """#!/bin/bash
[[ $1 == --parsable ]] || exit 9
range=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$2")
export SLURM_ARRAY_JOB_ID=77
for ((i = 0; i <= range; i++)); do SLURM_ARRAY_TASK_ID=$i bash "$2" > "$STAND_IN/task$i" 2>&1 || echo "task $i: $?" >> "$STAND_IN/ends"; done
echo 77
""",
        "srun": """#!/bin/bash
[[ $1 == --kill-on-bad-exit=0 ]] || exit 9
if [[ $SLURM_ARRAY_TASK_ID == 1 && ! -e $STAND_IN/notified ]]; then touch "$STAND_IN/notified"; exit 75; fi
"${@:2}"
""",
        "scontrol": """#!/bin/bash
echo "$@" >> "$STAND_IN/scontrol"
"""}

    def test_an_array_trains_the_runs_and_requeues_those_that_were_stopped(self):
        file = self.sweep_file("[[case]]\nname = \"it's\"\njob.description = \"it's $HOME\"\n", seeds=[1, 2, 3], slurm_options=["--time=60", "--gpus=0"],
                               parallel=2)
        bin = self.folder / "bin"
        for name, text in self.STAND_INS.items():
            self.write(f"bin/{name}", text).chmod(0o755)
        env = {"PATH": f"{bin}:{os.environ['PATH']}", "STAND_IN": str(self.folder)}
        self.sweep(file, "--slurm")
        script = self.out / "sweep.sbatch"
        text = script.read_text()
        self.assert_holds(text, "#SBATCH --array=0-2%2\n", "#SBATCH --time=60\n", "#SBATCH --gpus=0\n", "#SBATCH --signal=USR1@120\n")
        subprocess.run(["bash", "-n", script], check=True)
        # SC2016: the text '$HOME' is meant
        subprocess.run(["shellcheck", "--exclude=SC2016", script], check=True)

        run = self.sweep(file, "--submit", **env)
        self.assertEqual(run.stdout, "77\n")
        self.assertEqual((self.folder / "scontrol").read_text(), "requeue 77_1\n")
        self.assertEqual((self.folder / "ends").read_text(), "task 1: 75\n")
        self.sweep(file, "--collect", code=1)
        self.assertEqual(self.table()[0]["seeds"], "2")
        again = self.sweep(file, "--submit", **env)  # what is left
        self.assertIn("an array of 1 runs", again.stderr)
        self.sweep(file, "--collect")
        (case,) = self.result()["cases"]
        self.assertEqual([run["value"] for run in case["runs"]], [losses(run["folder"])[-1] for run in case["runs"]])

    def test_a_refusal_of_sbatch_is_an_error_with_its_text(self):
        self.write("bin/sbatch", "#!/bin/sh\necho 'invalid partition' >&2; exit 1\n").chmod(0o755)
        run = self.sweep(self.sweep_file(seeds=[1]), "--submit", code=1, PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}")
        self.assert_holds(run.stderr, "sbatch ended with exit code 1: invalid partition")


if __name__ == "__main__":
    main()
