"""`titan new-plugin`: every template becomes a project that builds, loads and, where it can be selected, trains."""

import os
import pathlib
import shutil

from harness import Case, main
from installed import PREFIX, build_project, titan_installed


# What selects the generated plugin, on top of the tiny debug recipe.
SELECTION = {
    "optimizer": ["--optimizer.name", "acme/quick_one"],
    "lr_scheduler": ["--lr_scheduler.name", "acme/quick_one"],
    "dataset": ["--training.dataset", "acme/quick_one"],
    "tokenizer": ["--tokenizer.name", "acme/quick_one"],
    "logger": ["--metrics.loggers", "console,jsonl,acme/quick_one"],
    "model": ["--model.name", "acme/quick_one", "--model.flavor", "small"],
    "flavor": ["--model.flavor", "acme/quick_one"],
    "device": ["--device.name", "acme/quick_one"],
    "parallelism": ["--parallelism.further", "acme/quick_one"],
    "pipeline_schedule": ["--parallelism.pipeline_parallel_schedule", "acme/quick_one",
                          "--parallelism.pipeline_parallel_degree", "2"],
    "activation_checkpoint": ["--activation_checkpoint.mode", "acme/quick_one"],
    "converter": ["--model.converters", "acme/quick_one"],
}

# The tiny recipe without the options of AdamW and of its schedule, which another plugin need not have.
RECIPE = """[model]
hf_assets_path = "./tests/assets/tokenizer"
[training]
dataset = "jsonl"
dataset_path = "{data}"
local_batch_size = 2
seq_len = 64
steps = 3
[metrics]
log_freq = 1
[debug]
seed = 1
"""


class NewPluginTest(Case):
    def generate(self, kind, name="acme/quick_one", directory=None):
        directory = directory or self.folder / "plugin"
        return directory, titan_installed("new-plugin", kind, name, "--directory", directory)

    def check_template(self, kind):
        # the same place at each test run, so that a compiler cache knows the sources again
        source = pathlib.Path(os.environ["TITAN_WORK"]) / "new_plugin" / kind
        shutil.rmtree(source, ignore_errors=True)
        _, run = self.generate(kind, directory=source)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(path.name for path in source.iterdir()), ["CMakeLists.txt", "quick_one.cpp"])
        for path in source.iterdir():
            self.assertNotRegex(path.read_text(), r"@[A-Z_]+@", path.name)

        # the printed commands are the ones that work
        plugins = source / "build/lib/titan/plugins"
        self.assert_holds(run.stdout, f"wrote {source}/CMakeLists.txt", f"wrote {source}/quick_one.cpp",
                          f"cmake -S {source} -B {source}/build -DTitan_ROOT={PREFIX}",
                          f"titan check {plugins}/acme_quick_one.plugin.so", f'paths = ["{plugins}"]')
        build_project(source, source / "build")

        name = {"flavor": "llama3/acme/quick_one"}.get(kind, "acme/quick_one")
        listed = titan_installed("list", kind, "--path", plugins)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertRegex(listed.stdout, rf"(?m)^{kind} +{name} +acme_quick_one +0\.1\.0 ")
        checked = titan_installed("check", plugins / "acme_quick_one.plugin.so")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.train_with(kind, plugins)

    def train_with(self, kind, plugins):
        data = "./tests/assets/corpus/train.jsonl"
        if kind == "dataset":
            data = self.write("lines.txt", "some words of a plain text file\n" * 200)
        recipe = self.write("train.toml", RECIPE.format(data=data))
        ranks = ["launch", "--nproc", "2", "--"] if kind == "pipeline_schedule" else []
        run = titan_installed(*ranks, "train", "--job.config_file", recipe, "--job.dump_folder", self.out, "--plugins.paths",
                              plugins, *SELECTION[kind])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("training completed after step 3", run.stderr)
        if kind == "logger":
            rows = [line.split(",") for line in (self.out / "quick_one.csv").read_text().splitlines()]
            self.assertEqual({row[0] for row in rows}, {"1", "2", "3"})
            self.assertIn("grad_norm", {row[1] for row in rows})

    def test_every_template_is_tested(self):
        templates = {path.name for path in (PREFIX / "share/titan/template").iterdir()}
        self.assertEqual(templates, set(SELECTION))

    def test_nothing_is_overwritten(self):
        source, run = self.generate("logger")
        self.assertEqual(run.returncode, 0, run.stderr)
        (source / "quick_one.cpp").write_text("mine")
        _, again = self.generate("logger")
        self.assertEqual(again.returncode, 2)
        self.assert_holds(again.stderr, str(source), "exists already", "--directory")
        self.assertEqual((source / "quick_one.cpp").read_text(), "mine")

    def test_names_that_cannot_be_are_refused(self):
        for name, reason in (("quick", "OWNER/NAME"), ("acme/", "must start with a letter"),
                             ("acme/9lives", "must start with a letter"), ("acme/a-b", "name of a class"),
                             ("ac me/x", "owner"), ("acme/a/b", "letters, digits")):
            with self.subTest(name=name):
                source, run = self.generate("logger", name)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assert_holds(run.stderr, f"'{name}'", reason)
                self.assertFalse(source.exists())

    def test_an_unknown_kind_is_refused_with_the_nearest(self):
        _, run = self.generate("optimiser")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "'optimiser'", "did you mean 'optimizer'?")

    def test_a_place_that_cannot_be_written_leaves_nothing(self):
        blocker = self.write("file", "in the way")
        _, run = self.generate("logger", directory=blocker / "plugin")
        self.assertNotEqual(run.returncode, 0)
        self.assert_holds(run.stderr, str(blocker))
        self.assertEqual(blocker.read_text(), "in the way")


def _add_template_tests():
    for kind in SELECTION:
        setattr(NewPluginTest, f"test_template_{kind}", lambda self, kind=kind: self.check_template(kind))


_add_template_tests()

if __name__ == "__main__":
    main()
