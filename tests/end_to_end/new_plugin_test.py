"""`titan new-plugin`: the project of every kind builds, passes its tests and trains 10 steps by its recipe, as its README says."""

import csv
import json
import os
import pathlib
import re
import shlex
import shutil
import tomllib

import yaml
from harness import ROOT, Case, main, thorough
from installed import PREFIX, assert_resumes_exactly, build_project, run_checked, titan_installed

# Every kind of plugin, and files of its project besides COMMON.
KINDS = {
    "activation_checkpoint": ["conformance.toml"], "chat_template": ["conversations.jsonl"], "command": [], "compile_backend": [], "converter": [], "dataset": [],
    "device": [], "flavor": [], "logger": [], "loss": [], "lr_scheduler": [], "model": [], "optimizer": [], "parallelism": [],
    "pipeline_schedule": [], "tokenizer": [], "watcher": []}
COMMON = {".github/workflows/plugin.yml", ".gitignore", "CMakeLists.txt", "README.md", "train.toml"}

# Lines that a source has for Titan and not for the plugin's purpose: they are the same in every plugin, but for names.
BOILERPLATE = re.compile(r"#include <titan/plugin\.h>|namespace \{|\}  // namespace|class New\w+ final : .*|\s*(explicit )?New\w+\(.*"
                         r"|\s*New\w+Options options_;|TITAN_PLUGIN\(plugin\) \{|\s*plugin\.add.*")

# One project for all plugins: one CMake configuration and build instead of 17.
TOGETHER = """cmake_minimum_required(VERSION 3.25)
project(templates LANGUAGES CXX)
enable_testing()
find_package(Titan REQUIRED)
"""

HAS_CONFORMANCE = "--conformance" in titan_installed("check", "--help").stdout


def generate(kind, directory, name=None):
    return titan_installed("new-plugin", kind, name or f"acme/new_{kind}", "--directory", directory)


def run_tests(build):
    """ctest of a built project."""
    run_checked("ctest", "--test-dir", build, "--output-on-failure", *([] if HAS_CONFORMANCE else ["-E", r"\.conformance$"]))


def lend_text(project):
    """The text and tokenizer that come with Titan are in tests/assets of the working directory."""
    (project / "tests").symlink_to(ROOT / "tests")


def recipe_command(project):
    """The arguments of titan in the second line of train.toml."""
    line = (project / "train.toml").read_text().splitlines()[1]
    words = shlex.split(line.removeprefix("#"))
    assert words[0] == "titan", line
    return words[1:]


class ProjectCase(Case):
    def generated(self, kind, name=None, directory=None):
        directory = directory or self.folder / kind
        return directory, generate(kind, directory, name)

    def train(self, project, *arguments):
        run = titan_installed(*recipe_command(project), *arguments, cwd=project)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run


class NewPluginTest(ProjectCase):
    def test_the_project_of_each_kind_is_complete(self):
        templates = {path.name for path in (PREFIX / "share/titan/template").iterdir()} - {"common"}
        self.assertEqual(templates, set(KINDS))
        for kind, further in KINDS.items():
            with self.subTest(kind=kind):
                source, run = self.generated(kind)
                self.assertEqual(run.returncode, 0, run.stderr)
                files = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
                self.assertEqual(files, COMMON | {f"new_{kind}.cpp", f"new_{kind}_test.cpp", *further})
                self.assertEqual([line.split()[1] for line in run.stdout.splitlines() if line.startswith("wrote ")],
                                 [str(source / file) for file in sorted(files)])
                for file in files:
                    self.assertNotRegex((source / file).read_text(), r"@[A-Z_]+@|\n\n\n", file)
                self.assertLessEqual(len((source / "CMakeLists.txt").read_text().splitlines()), 10)
                # the closing brace of TITAN_PLUGIN is one more
                boilerplate = ["}"] + [line for line in (source / f"new_{kind}.cpp").read_text().splitlines() if BOILERPLATE.fullmatch(line)]
                self.assertLessEqual(len(boilerplate), 10, "\n".join(boilerplate))
                self.check_recipe(source)
                self.check_ci(source)
                self.check_readme(source, kind)

    def check_recipe(self, source):
        recipe = tomllib.loads((source / "train.toml").read_text())
        self.assertEqual((recipe["plugins"]["paths"], recipe["training"]["steps"]), (["build/lib/titan/plugins"], 10))

    def check_ci(self, source):
        """GitHub reads the key `on`, which is a boolean for YAML 1.1."""
        workflow = yaml.safe_load((source / ".github/workflows/plugin.yml").read_text())
        steps = workflow["jobs"]["test"]["steps"]
        self.assertTrue(all(("uses" in step) != ("run" in step) for step in steps))
        script = "\n".join(step.get("run", "") for step in steps)
        self.assert_holds(script, "pip install", "cmake --build build", "ctest --test-dir build",
                          "titan " + shlex.join(recipe_command(source)))
        run_checked("bash", "-n", self.write("steps.sh", script))

    def check_readme(self, source, kind):
        text = (source / "README.md").read_text()
        self.assertEqual(re.findall(r"(?m)^## (.*)$", text), ["Edit", "Build and test", "Train", "Resume", "Share"])
        # tests that it names exist
        for name in re.findall(r"`([A-Z][a-z]+[A-Z][A-Za-z]+)`", text):
            if "::" not in name:
                self.assertRegex((source / f"new_{kind}_test.cpp").read_text(), rf"TEST(_F)?\(\w+, {name}\)")

    def test_the_printed_commands_work(self):
        """With the least expensive kind: built as printed, tested, trained by the unchanged recipe."""
        source = pathlib.Path(os.environ["TITAN_WORK"]) / "new_plugin_quick"  # always the same, so that a compiler cache recognises the sources
        shutil.rmtree(source, ignore_errors=True)
        run = generate("lr_scheduler", source, "acme/quick_one")
        self.assertEqual(run.returncode, 0, run.stderr)
        plugin = source / "build/lib/titan/plugins/acme_quick_one.plugin.so"
        self.assert_holds(run.stdout, f"cmake -S {source} -B {source}/build -DTitan_ROOT={PREFIX} && cmake --build {source}/build",
                          f"ctest --test-dir {source}/build", f"titan check {plugin}", f'paths = ["{plugin.parent}"]',
                          f"cd {source} && titan train --job.config_file train.toml", '[lr_scheduler]\n  name = "acme/quick_one"')
        build_project(source, source / "build")
        run_tests(source / "build")
        checked = titan_installed("check", plugin)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        lend_text(source)
        self.assertIn("training completed after step 10", self.train(source).stderr)

    def test_kinds_are_listed(self):
        run = titan_installed("new-plugin")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(re.findall(r"(?m)^  (\w+)  +\w", run.stdout), sorted(KINDS))
        self.assertEqual(titan_installed("new-plugin", "logger").returncode, 2)

    def test_nothing_is_overwritten(self):
        source, run = self.generated("logger", "acme/quick_one")
        self.assertEqual(run.returncode, 0, run.stderr)
        (source / "quick_one.cpp").write_text("mine")
        _, again = self.generated("logger", "acme/quick_one")
        self.assertEqual(again.returncode, 2)
        self.assert_holds(again.stderr, str(source), "exists already", "--directory")
        self.assertEqual((source / "quick_one.cpp").read_text(), "mine")

    def test_names_that_cannot_be_are_refused(self):
        for name, reason in (("quick", "OWNER/NAME"), ("acme/", "must start with a letter"),
                             ("acme/9lives", "must start with a letter"), ("acme/a-b", "name of a class"),
                             ("ac me/x", "owner"), ("acme/a/b", "letters, digits")):
            with self.subTest(name=name):
                source, run = self.generated("logger", name)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assert_holds(run.stderr, f"'{name}'", reason)
                self.assertFalse(source.exists())

    def test_an_unknown_kind_is_refused_with_the_nearest(self):
        _, run = self.generated("optimiser")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "'optimiser'", "did you mean 'optimizer'?", "kinds: activation_checkpoint, chat_template")

    def test_a_place_that_cannot_be_written_leaves_nothing(self):
        blocker = self.write("file", "in the way")
        _, run = self.generated("logger", directory=blocker / "plugin")
        self.assertNotEqual(run.returncode, 0)
        self.assert_holds(run.stderr, str(blocker))
        self.assertEqual(blocker.read_text(), "in the way")

    def test_without_googletest_the_unit_test_is_skipped_with_a_message(self):
        source, _ = self.generated("logger")
        run = run_checked("cmake", "-S", source, "-B", source / "build", "-G", "Ninja", f"-DTitan_ROOT={PREFIX}",
                          "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON")
        self.assertIn("acme_new_logger.unit is skipped: CMake found no GoogleTest. Install libgtest-dev", run.stdout)
        tested = run_checked("ctest", "--test-dir", source / "build", "-R", "unit")
        self.assertRegex(tested.stdout, r"acme_new_logger\.unit \.+\*+Skipped")


@thorough
class EveryKindTest(ProjectCase):
    """All projects in one build; each recipe runs unchanged, in its own project."""

    # the same path at each test run, so that a compiler cache recognises the sources
    root = pathlib.Path(os.environ["TITAN_WORK"]) / "new_plugin"
    is_built = False

    @classmethod
    def build_all(cls):
        if cls.is_built:
            return
        shutil.rmtree(cls.root, ignore_errors=True)
        for kind in KINDS:
            run = generate(kind, cls.root / kind)
            if run.returncode != 0:
                raise AssertionError(f"new-plugin {kind}: {run.stderr}")
        (cls.root / "CMakeLists.txt").write_text(TOGETHER + "".join(f"add_subdirectory({kind})\n" for kind in KINDS))
        build_project(cls.root, cls.root / "build")
        for kind in KINDS:  # where the recipe looks for the plugin
            (cls.root / kind / "build").symlink_to(cls.root / "build")
            lend_text(cls.root / kind)
        cls.is_built = True

    def check_kind(self, kind):
        self.build_all()
        source, plugins, name = self.root / kind, self.root / "build/lib/titan/plugins", f"acme/new_{kind}"
        provided = f"llama3/{name}" if kind == "flavor" else name
        listed = titan_installed("list", kind, "--files", "--path", plugins)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertRegex(listed.stdout, rf"(?m)^{kind} +{provided} +acme_new_{kind} +0\.1\.0 ")
        checked = titan_installed("check", plugins / f"acme_new_{kind}.plugin.so")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        run_checked("ctest", "--test-dir", source / "build" / kind, "--output-on-failure", *([] if HAS_CONFORMANCE else ["-E", "conformance"]))
        self.assertIn("training completed after step 10", self.train(source, "--job.dump_folder", self.out).stderr)
        if kind != "command":
            self.assertIn(name, (self.out / "config.toml").read_text())  # the resolved configuration
        getattr(self, f"after_{kind}", lambda *_: None)(source, plugins)

    def after_optimizer(self, source, plugins):
        lines = [line.split("#")[0] for line in (source / "train.toml").read_text().splitlines()]
        recipe = self.write("train.toml", "\n".join(lines).replace("build/lib", f"{source}/build/lib"))
        assert_resumes_exactly(self, self.folder, "--job.config_file", recipe, "--optimizer.name", "acme/new_optimizer")

    def after_watcher(self, source, plugins):
        logged = [json.loads(line) for line in (self.out / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in logged if "rms/layers.0.feed_forward" in line], list(range(1, 11)))

    def after_logger(self, source, plugins):
        rows = list(csv.reader((self.out / "new_logger.csv").read_text().splitlines()))
        self.assertEqual({row[0] for row in rows}, {str(step) for step in range(1, 11)})
        self.assertIn("grad_norm", {row[1] for row in rows})

    def after_command(self, source, plugins):
        """It prints the sessions of a run; `titan --help` lists it without loading it."""
        name, environment = "acme/new_command", {"TITAN_PLUGIN_PATH": str(plugins)}
        shown = titan_installed(name, self.out, **environment)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"(?m)^1 +10 +finished$")
        self.assertRegex(titan_installed("--help", **environment).stdout, rf"(?m)^  {name}  the sessions of a run: first and last step")
        self.assertIn(f"usage: titan {name} RUN [--failed]", titan_installed(name, "--help", **environment).stdout)
        wrong = titan_installed(name, self.out, "--faild", **environment)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("unknown option '--faild'; did you mean '--failed'?", wrong.stderr)

    def assert_recipe_resumes(self, source):
        """Six steps in one run and in two: bitwise equal weights and states."""
        flags = ["--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0", "--checkpoint.enable", "--checkpoint.interval", "3",
                 "--checkpoint.no_last_save_model_only", "--debug.deterministic"]
        straight, parts = self.folder / "straight", self.folder / "parts"
        self.train(source, *flags, "--job.dump_folder", straight, "--training.steps", 6)
        self.train(source, *flags, "--job.dump_folder", parts, "--training.steps", 3)
        self.assertIn("resumed after step 3", self.train(source, *flags, "--job.dump_folder", parts, "--training.steps", 6).stderr)
        saved = sorted((straight / "checkpoint/step-6").glob("*.safetensors"))
        self.assertTrue(saved)
        for path in saved:
            self.assertEqual(path.read_bytes(), (parts / "checkpoint/step-6" / path.name).read_bytes(), path.name)

    def after_dataset(self, source, plugins):
        self.assert_recipe_resumes(source)

    def after_converter(self, source, plugins):
        self.assert_recipe_resumes(source)

    def after_loss(self, source, plugins):
        self.assert_recipe_resumes(source)


def _add_tests_of_kinds():
    for kind in KINDS:
        setattr(EveryKindTest, f"test_{kind}", lambda self, kind=kind: self.check_kind(kind))


_add_tests_of_kinds()

if __name__ == "__main__":
    main()
