"""experiments/hidden_states, built against an installation: a watcher that writes activations, which are those of transformers
for the same weights and tokens; the run is unchanged."""

import os
import pathlib
import subprocess
import sys

import numpy
import safetensors.numpy

from harness import HANG, ROOT, Case, main, metrics
from installed import PREFIX, build_project, titan_installed, train_installed

RECIPE = "experiments/hidden_states/train.toml"
NAME = "maintainers/hidden_states"
OPTION = f"--watcher.{NAME}."
# in the order of transformers' output_hidden_states, whose last entry follows the final norm
MODULES = ["tok_embeddings", "layers.0", "layers.1"]
ROWS, SEQ_LEN, STEPS = 4, 64, 3  # of the job, except the steps
CORPUS, TOKENIZER = ROOT / "tests/assets/corpus/train.jsonl", ROOT / "tests/assets/tokenizer"
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "hidden_states"
    PLUGINS = build_project(ROOT / "experiments/hidden_states", build) / "lib/titan/plugins"


def train(out, *arguments, ranks=1, steps=STEPS):
    return train_installed(ranks, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, "--training.steps", steps,
                           "--lr_scheduler.decay_ratio", "0", "--model.n_layers", "3", "--debug.deterministic",
                           OPTION + "modules", ",".join(MODULES), OPTION + "steps", "1,3", *arguments)


def written(out, step, module):
    """The rows of the global batch in order, from the files of all ranks."""
    parts = []
    for path in (out / f"hidden_states/step_{step}").iterdir():
        with safetensors.safe_open(path, "np") as file:
            if module in file.keys():
                parts.append((int(file.metadata()["first_row"]), file.get_tensor(module)))
    return numpy.concatenate([part for _, part in sorted(parts, key=lambda part: part[0])])


class HiddenStatesTest(Case):
    def run_it(self, name, *arguments, **others):
        out = self.folder / name
        run = train(out, *arguments, **others)
        self.assertEqual(run.returncode, 0, run.stderr)
        return out

    def assert_near(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        self.assertEqual(found.dtype, numpy.float32)
        largest = numpy.abs(expected).max()
        difference = numpy.abs(found - expected).max() / largest
        print(f"largest {largest:.3f}, relative difference {difference:.2e}", flush=True)
        self.assertLess(difference, 2e-6)

    def test_equals_transformers(self):
        learnt = self.run_it("learnt", "--optimizer.lr", "3e-2", "--checkpoint.enable", "--checkpoint.interval", "20",
                             steps=20) / "checkpoint/step-20"
        still = ["--optimizer.lr", "1e-30", "--checkpoint.enable", "--checkpoint.initial_load_path", learnt]  # all steps have those weights
        alone = self.run_it("alone", *still)
        export, states = self.folder / "export", self.folder / "states.npz"
        run = titan_installed("convert", "to-hf", learnt, export)
        self.assertEqual(run.returncode, 0, run.stderr)
        referee = subprocess.run([sys.executable, ROOT / "tests/referee/hidden_states_referee.py", export, CORPUS, TOKENIZER,
                                  str(ROWS), str(SEQ_LEN), str(STEPS), states], capture_output=True, text=True, timeout=HANG)
        self.assertEqual(referee.returncode, 0, referee.stderr)
        expected = numpy.load(states)
        self.assertEqual(sorted(path.name for path in (alone / "hidden_states").iterdir()), ["step_1", "step_3"])
        runs = {"alone": alone,
                "rows": self.run_it("rows", "--training.local_batch_size", "1", *still),
                "fsdp": self.run_it("fsdp", "--parallelism.data_parallel_shard_degree", "2", *still, ranks=2),
                "pp": self.run_it("pp", "--parallelism.pipeline_parallel_degree", "2", *still, ranks=2),
                "full": self.run_it("full", "--activation_checkpoint.mode", "full", *still)}
        for name, out in runs.items():
            for step in (1, 3):
                for place, module in enumerate(MODULES):
                    with self.subTest(name, step=step, module=module):
                        self.assert_near(written(out, step, module), expected[str(step)][place])
        for place in range(len(MODULES)):  # other tokens would show
            self.assertGreater(numpy.abs(expected["1"][place] - expected["3"][place]).max(), 1e-2)

    def test_the_run_does_not_notice(self):
        watched = self.run_it("watched")
        plain = self.folder / "plain"
        run = train_installed(1, "--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", plain, "--training.steps", STEPS,
                              "--lr_scheduler.decay_ratio", "0", "--model.n_layers", "3", "--debug.deterministic", "--job.watchers", "")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertFalse((plain / "hidden_states").exists())
        for tag in ("loss_metrics/global_avg_loss", "grad_norm"):
            found, expected = ([line[tag] for line in metrics(out) if tag in line] for out in (watched, plain))
            self.assertEqual(found, expected)
            self.assertEqual(len(expected), STEPS)

    def test_mistakes_are_found_before_the_start(self):
        for arguments in ([], ["--dry-run"]):
            run = train(self.out, OPTION + "modules", "layers.9", *arguments)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, "modules: 'layers.9' matches no module of the model", "nothing was started")
        run = train(self.out, "--job.watchers", "maintainers/hidden_stats")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "unknown watcher 'maintainers/hidden_stats'", f"did you mean '{NAME}'?")
        self.assert_nothing_was_written()

    def test_it_is_listed_and_described(self):
        self.assertRegex(titan_installed("list", "watcher", "--path", PLUGINS).stdout, rf"(?m)^watcher +{NAME} ")
        described = titan_installed("describe", "watcher", NAME, "--path", PLUGINS)
        self.assertEqual(described.returncode, 0, described.stderr)
        self.assert_holds(described.stdout, "modules", "steps")


if __name__ == "__main__":
    assert PREFIX.is_dir(), f"nothing is installed in {PREFIX}"
    main()
