"""`titan new-plugin`: every template becomes a project that builds, loads and, where it can be selected, trains."""

import json
import os
import pathlib
import shutil

from harness import Case, main
from installed import PREFIX, assert_resumes_exactly, build_project, titan_installed


# Generated plugins are named after their kind. Arguments that select them, in addition to the tiny
# debug job:
SELECTION = {
    "optimizer": ["--optimizer.name", "acme/new_optimizer"],
    "lr_scheduler": ["--lr_scheduler.name", "acme/new_lr_scheduler"],
    "loss": ["--loss.name", "acme/new_loss"],
    "dataset": ["--training.dataset", "acme/new_dataset"],
    "tokenizer": ["--tokenizer.name", "acme/new_tokenizer"],
    "chat_template": ["--chat_template.name", "acme/new_chat_template"],
    "logger": ["--metrics.loggers", "console,jsonl,acme/new_logger"],
    "watcher": ["--job.watchers", "acme/new_watcher"],
    "model": ["--model.name", "acme/new_model", "--model.flavor", "small"],
    "flavor": ["--model.flavor", "acme/new_flavor"],
    "device": ["--device.name", "acme/new_device"],
    "parallelism": ["--parallelism.further", "acme/new_parallelism"],
    "pipeline_schedule": ["--parallelism.pipeline_parallel_schedule", "acme/new_pipeline_schedule",
                          "--parallelism.pipeline_parallel_degree", "2"],
    "activation_checkpoint": ["--activation_checkpoint.mode", "acme/new_activation_checkpoint"],
    "converter": ["--model.converters", "acme/new_converter"],
    "command": [],
    "compile_backend": ["--compile.enable", "--compile.backend", "acme/new_compile_backend"],
}

# One project for all plugins: one CMake configuration and build instead of twelve.
TOGETHER = """cmake_minimum_required(VERSION 3.25)
project(templates LANGUAGES CXX)
find_package(Titan REQUIRED)
"""

# The tiny job without options of AdamW and of its schedule, which another plugin may lack.
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
    # the same path at each test run, so that a compiler cache recognises the sources
    root = pathlib.Path(os.environ["TITAN_WORK"]) / "new_plugin"
    plugins = None  # folder of the built templates

    @classmethod
    def build_templates(cls):
        """Generates every template and builds them, once for all tests."""
        if cls.plugins:
            return
        shutil.rmtree(cls.root, ignore_errors=True)
        for kind in SELECTION:
            run = titan_installed("new-plugin", kind, f"acme/new_{kind}", "--directory", cls.root / kind)
            if run.returncode != 0:
                raise AssertionError(f"new-plugin {kind}: {run.stderr}")
        (cls.root / "CMakeLists.txt").write_text(
            TOGETHER + "".join(f"add_subdirectory({kind})\n" for kind in SELECTION))
        build_project(cls.root, cls.root / "build")
        cls.plugins = cls.root / "build/lib/titan/plugins"

    def generate(self, kind, name="acme/quick_one", directory=None):
        directory = directory or self.folder / "plugin"
        return directory, titan_installed("new-plugin", kind, name, "--directory", directory)

    def check_template(self, kind):
        self.build_templates()
        source, plugins, name = self.root / kind, self.plugins, f"new_{kind}"
        self.assertEqual(sorted(path.name for path in source.iterdir()), ["CMakeLists.txt", f"{name}.cpp"])
        for path in source.iterdir():
            self.assertNotRegex(path.read_text(), r"@[A-Z_]+@", path.name)
        provided = f"llama3/acme/{name}" if kind == "flavor" else f"acme/{name}"
        listed = titan_installed("list", kind, "--files", "--path", plugins)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertRegex(listed.stdout, rf"(?m)^{kind} +{provided} +acme_{name} +0\.1\.0 ")
        checked = titan_installed("check", plugins / f"acme_{name}.plugin.so")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        if kind == "command":
            self.run_command(provided, plugins)
        else:
            self.train_with(kind, plugins)

    def run_command(self, name, plugins):
        """The template prints the sessions of a run; `titan --help` lists it without loading it."""
        environment = {"TITAN_PLUGIN_PATH": str(plugins)}
        run = titan_installed("train", "--job.config_file", self.write("train.toml", RECIPE.format(data="./tests/assets/corpus/train.jsonl")),
                              "--job.dump_folder", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        shown = titan_installed(name, self.out, **environment)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"(?m)^1 +3 +finished$")
        self.assertRegex(titan_installed("--help", **environment).stdout, rf"(?m)^  {name}  the sessions of a run: first and last step")
        self.assertIn(f"usage: titan {name} RUN [--failed]", titan_installed(name, "--help", **environment).stdout)
        wrong = titan_installed(name, self.out, "--faild", **environment)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("unknown option '--faild'; did you mean '--failed'?", wrong.stderr)

    def test_the_printed_commands_are_the_ones_that_work(self):
        source, run = self.generate("lr_scheduler")
        self.assertEqual(run.returncode, 0, run.stderr)
        plugins = source / "build/lib/titan/plugins"
        self.assert_holds(run.stdout, f"wrote {source}/CMakeLists.txt", f"wrote {source}/quick_one.cpp",
                          f"cmake -S {source} -B {source}/build -DTitan_ROOT={PREFIX}",
                          f"titan check {plugins}/acme_quick_one.plugin.so", f'paths = ["{plugins}"]')
        build_project(source, source / "build")
        checked = titan_installed("check", plugins / "acme_quick_one.plugin.so")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

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
        if kind == "optimizer":
            assert_resumes_exactly(self, self.folder, "--job.config_file", recipe, "--plugins.paths", plugins, *SELECTION[kind])
        if kind == "watcher":
            logged = [json.loads(line) for line in (self.out / "metrics.jsonl").read_text().splitlines()]
            self.assertEqual([line["step"] for line in logged if "rms/layers.0.feed_forward" in line], [1, 2, 3])
        if kind == "logger":
            rows = [line.split(",") for line in (self.out / "new_logger.csv").read_text().splitlines()]
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
