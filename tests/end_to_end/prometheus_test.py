"""The prometheus logger's file, read by Prometheus' Python client, and by promtool if it is installed."""

import shutil
import subprocess

from harness import Case, main, metrics
from prometheus_client.parser import text_fd_to_metric_families

BASE = {"(s)": ("_seconds", 1), "(%)": ("_ratio", 0.01), "(GiB)": ("_bytes", 2**30), "(MiB)": ("_bytes", 2**20),
        "(tps)": ("_tokens_per_second", 1)}
NAMED = {"tflops": ("titan_floating_point_operations_per_second", 1e12), "n_tokens_seen": ("titan_tokens_seen_total", 1),
         "n_tokens_learned": ("titan_tokens_learned_total", 1),
         "lr": ("titan_learning_rate", 1)}
# promtool's advice that Titan does not follow: the unit is standard in this field
ADVICE = ['titan_validation_metrics_bits_per_byte use base unit "bytes" instead of "bits"']
DESCRIPTION = 'a "run" \\ of\ttwo\nlines, größer'


def expected(scalars):
    """Names and values in base units of the scalars of metrics.jsonl."""
    found = {}
    for tag, value in scalars.items():
        if tag in NAMED:
            name, factor = NAMED[tag]
        else:
            ending, (unit, factor) = next(((e, u) for e, u in BASE.items() if tag.endswith(e)), ("", ("", 1)))
            name = "titan_" + tag.removesuffix(ending).replace("/", "_") + unit
        found[name] = float(value) * factor
    return found


class PrometheusTest(Case):
    def read(self, path):
        """All samples by name, each with its labels; every metric family must occur once."""
        with open(path) as file:
            families = list(text_fd_to_metric_families(file))
        names = [family.name for family in families]
        self.assertEqual(len(names), len(set(names)))
        for family in families:
            self.assertTrue(family.documentation, family.name)
            for sample in family.samples:
                self.assertIsNone(sample.timestamp)
                self.assertEqual({key: sample.labels[key] for key in ("run", "rank")}, {"run": path.parent.name, "rank": "0"})
        if promtool := shutil.which("promtool"):
            check = subprocess.run([promtool, "check", "metrics"], input=path.read_text(), capture_output=True, text=True)
            said = [line for line in (check.stdout + check.stderr).splitlines() if line not in ADVICE]
            self.assertEqual((check.returncode & ~3, said), (0, []))  # 3: promtool has advice
        samples = [sample for family in families for sample in family.samples]
        self.assertEqual(len({sample.name for sample in samples}), len(samples))
        return {sample.name: sample for sample in samples}, {family.name: family.type for family in families}

    def test_the_file_holds_the_latest_of_every_scalar_in_base_units(self):
        self.train("--metrics.loggers", "jsonl,prometheus", "--job.description", DESCRIPTION, "--metrics.log_freq", "2",
                   "--validation.enable", "--validation.freq", "2", "--validation.steps", "1", "--validation.dataset", "jsonl",
                   "--validation.dataset_path", "./tests/assets/corpus/validation.jsonl", "--checkpoint.enable",
                   "--training.steps", "4")
        samples, types = self.read(self.out / "titan.prom")
        latest = {}
        for line in metrics(self.out):
            latest.update(line)
        step = latest.pop("step")
        latest.pop("wall_time")
        self.assertEqual(step, 4)
        wanted = expected(latest)
        self.assertIn("titan_validation_metrics_loss", wanted)
        self.assertIn("titan_time_metrics_checkpoint_seconds", wanted)
        for name, value in wanted.items():
            self.assertAlmostEqual(samples[name].value / (value or 1), 1 if value else 0, places=12, msg=name)
        own = {name: sample.value for name, sample in samples.items() if name not in wanted}
        self.assertLessEqual(own.pop("titan_start_time_seconds"), own.pop("titan_last_log_time_seconds"))
        self.assertEqual(own, {"titan_step": 4, "titan_steps": 4, "titan_running": 0, "titan_outcome": 1, "titan_run_info": 1})
        self.assertEqual(samples["titan_outcome"].labels["outcome"], "finished")
        self.assertEqual(samples["titan_run_info"].labels["description"], 'a "run" \\ of\\x09two\\x0alines, größer')
        self.assertEqual({name for name, kind in types.items() if kind == "counter"}, {"titan_tokens_seen", "titan_tokens_learned"})
        self.assertEqual([path.name for path in self.out.glob(".titan*")], [])

    def test_the_file_stands_where_it_is_asked_for(self):
        path = self.folder / "collected" / "job.prom"
        path.parent.mkdir()
        self.train("--metrics.loggers", "console,prometheus", "--logger.prometheus.file", path)
        self.assertEqual(list(path.parent.iterdir()), [path])
        with open(path) as file:
            self.assertTrue(list(text_fd_to_metric_families(file)))


if __name__ == "__main__":
    main()
