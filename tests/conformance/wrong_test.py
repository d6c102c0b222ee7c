"""titan check --conformance finds each deliberate defect of wrong/KIND.cpp by the test of that name, and reports no other.

The plugins were written from the sentences of `titan check --list` alone. A component is named wrong/TEST or wrong/TEST.VARIANT;
wrong/expected.toml lists those that fail further tests, with the reason. By default the tests that start no runs judge every component of
their kind, and one component per kind is judged by a test that starts runs. TITAN_EVERY_TEST=1: every test judges every component."""

import collections
import json
import os
import pathlib
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from harness import HANG, SEED, TITAN, Case, main, titan  # noqa: E402

PLUGINS = pathlib.Path(TITAN).parents[1] / "tests/wrong_plugins"
TABLE = tomllib.loads((pathlib.Path(__file__).resolve().parent / "wrong/expected.toml").read_text())
EVERY_TEST = os.environ.get("TITAN_EVERY_TEST") == "1"

# Tests of every kind; device.cpp, lr_scheduler.cpp and quiet_load.cpp have their defects.
COMMON = {"quiet_load", "same_twice", "help", "defaults", "limits"}
ABILITIES = ["splits_batches", "executes", "wraps", "step_member", "reduces", "after_optimizer_step", "export_transform"]
LAYOUTS = ["layout_fsdp", "layout_tensor", "layout_pipeline"]
# Tests that start runs, by kind. By default the first one judges the component that is named after it, too.
RUNS = {
    "activation_checkpoint": ["values", *LAYOUTS, *ABILITIES],
    "chat_template": [],
    "command": [],
    "compile_backend": ["values", "acts", "exact_values", "shapes", *LAYOUTS, "recomputed", "resume", *ABILITIES],
    "converter": ["acts", "values", *LAYOUTS, "recomputed", "accumulation", "resume", *ABILITIES],
    "dataset": ["resume", "any_ranks", "epochs"],
    "device": ["same_bits", "trains", "connects"],
    "flavor": ["dry_run"],
    "logger": ["writes", "observes", "missing_steps", "full_disk", "same_results", "ranks", "resume"],
    "loss": ["accumulation", "layouts"],
    "lr_scheduler": ["resume"],
    "model": ["recomputed", *LAYOUTS, "layout_context", "resume", "generates", "exports"],
    "optimizer": ["resume", "layout_fsdp", "layout_tensor", "accumulation", "step_member"],
    "parallelism": ["alone", "acts", "same_start", "with_fsdp", "with_tensor", "with_pipeline", "with_context", "accumulation", "recomputed",
                    "resume", "to_one_rank", *ABILITIES],
    "pipeline_schedule": ["trains"],
    "tokenizer": ["trains"],
    "watcher": ["same_results", "observes", "accumulation", "layout_fsdp", "layout_pipeline", "recomputed", "resume"],
}
# Defects that a process shows only once, or that end it, and those of a test in COMMON: by default all tests of others run in one process.
OWN_PROCESS = ["dataset/wrong/repeatable", "device/wrong/defaults", "lr_scheduler/wrong/defaults", "lr_scheduler/wrong/limits",
               "lr_scheduler/wrong/pure.other", "lr_scheduler/wrong/same_twice", "tokenizer/wrong/deterministic"]


def named(component):
    """The test in the name of a component wrong/TEST or wrong/TEST.VARIANT: none for wrong/right, all expected ones for a flavor."""
    if "/wrong/" not in component:
        return expected(component)
    name = component.split("/wrong/")[1].split(".")[0]
    return set() if component.endswith(("/wrong/right", "/wrong/empty")) or name == "right" else {name}


def expected(component):
    row = TABLE["components"].get(component)
    return set(row["fails"]) if row else named(component)


class WrongPluginsTest(Case):
    def verdicts(self, library, only="", *flags):
        """{component: {test: (verdict, detail)}} of the tests whose name matches one of the patterns, or of all."""
        answer = self.folder / "result.json"
        answer.unlink(missing_ok=True)
        run = titan("check", PLUGINS / library / f"wrong_{library}.plugin.so", "--conformance", "--json", answer, "--reproduce", SEED,
                    *(["--only", only] if only else []), *flags, timeout=HANG * 10, cwd=self.folder)
        self.assertTrue(answer.exists(), f"{only}: exit code {run.returncode}\n{run.stdout}{run.stderr}")
        found = collections.defaultdict(dict)
        for test in json.loads(answer.read_text())["tests"]:
            component, name = test["test"].rsplit("/", 1)
            found[component][name] = (test["verdict"], test["detail"])
        return found

    def expect(self, component, verdicts):
        """The component fails those of its expected tests that were asked for, and no other."""
        failed = {name: detail for name, (verdict, detail) in verdicts.items() if verdict == "failed"}
        with self.subTest(component=component):
            self.assertEqual(set(failed), expected(component) & set(verdicts), failed)

    def check_kind(self, kind):
        listed = self.folder / "list.json"
        self.assertEqual(titan("check", "--list", "--json", listed).returncode, 0)
        tests = {test["test"] for test in json.loads(listed.read_text()) if test["kind"] == kind}
        found = self.verdicts(kind) if EVERY_TEST else self.quick_verdicts(kind, tests)
        for component in sorted(found):
            self.expect(component, found[component])
        covered = set().union(*map(named, found))
        without = {test.split("/")[1] for test in TABLE["no_plugin"] if test.startswith(f"{kind}/")}
        self.assertEqual(tests - covered, without, "tests without a plugin that must fail them")

    def quick_verdicts(self, kind, tests):
        quick = ["help", *sorted(tests - set(RUNS[kind]))]
        patterns = [f"{kind}/*/{test}" for test in quick]
        for test in RUNS[kind][:1]:
            patterns.append(f"{kind}/*/{test}" if kind == "flavor" else f"{kind}/wrong/{test}/{test}")
        found = self.verdicts(kind, ",".join(patterns), "--in-process")
        for component in OWN_PROCESS:
            if component.startswith(f"{kind}/"):
                found.update(self.verdicts(kind, ",".join(f"{component}/{test}" for test in {*quick, *COMMON})))
        return found

    def test_loading(self):
        for library in ("load_prints", "load_writes"):
            for component, verdicts in self.verdicts(library).items():
                self.expect(component, verdicts)

    def test_the_table_has_no_needless_row(self):
        for component, row in TABLE["components"].items():
            with self.subTest(component=component):
                self.assertTrue(row["reason"].strip())
                self.assertNotEqual((set(row["fails"]), component.count("/wrong/")), (named(component), 1))


for each in RUNS:
    setattr(WrongPluginsTest, f"test_{each}", lambda self, kind=each: self.check_kind(kind))

if __name__ == "__main__":
    main()
