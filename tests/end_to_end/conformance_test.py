"""titan check --conformance: verdicts, conformance.toml, output files, exit codes; thorough: plugins that ship conform."""

import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

from harness import HANG, ROOT, TITAN, Case, main, thorough, titan

PLUGINS = pathlib.Path(TITAN).parents[1] / "lib/titan/plugins"
SCHEDULE = PLUGINS / "warmup_stable_decay.plugin.so"
PURE = "lr_scheduler/warmup_stable_decay/pure"


def tool(*arguments):
    return subprocess.run([sys.executable, ROOT / "tools/conformance.py", *arguments], capture_output=True, text=True, timeout=HANG * 6,
                          env={**os.environ, "TITAN_SOURCE_DIR": str(ROOT), "TITAN_PROGRAM": str(TITAN)})


class ConformanceTest(Case):
    def check(self, *arguments, code=0, plugin=SCHEDULE):
        run = titan("check", str(plugin), "--conformance", *map(str, arguments))
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def expecting(self, text):
        return ["--expect", self.write("conformance.toml", text)]

    def test_a_result_has_its_versions_its_seed_and_each_test(self):
        answer, junit = self.folder / "result.json", self.folder / "result.xml"
        run = self.check("--only", "pure", "--reproduce", "7", "--json", answer, "--junit", junit)
        self.assert_holds(run.stdout, f"passed            {PURE}", "1 passed, 0 failed", "--reproduce 7")
        result = json.loads(answer.read_text())
        self.assertEqual([test["test"] for test in result["tests"]], [PURE])
        self.assertEqual((result["good"], result["seed"], result["counts"]["passed"]), (True, 7, 1))
        self.assertEqual(result["sha256"], subprocess.run(["sha256sum", SCHEDULE], capture_output=True, text=True).stdout[:64])
        self.assertIn(f"sdk_abi={result['sdk']}".encode(), SCHEDULE.read_bytes())
        suite = xml.etree.ElementTree.parse(junit).getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite[0].get("name")), ("1", "0", "pure"))

    def test_no_test_is_a_failure(self):
        self.assert_holds(self.check("--only", "nothing", code=3).stderr, "no test was run", "nothing")

    def test_an_expected_failure_that_passes_is_a_failure(self):
        run = self.check("--only", "pure", *self.expecting('[expected_failures]\npure = "a reason of ours"\n'), code=3)
        self.assert_holds(run.stdout, f"failed            {PURE}", "it passes", "a reason of ours")

    def test_the_authors_file_is_checked(self):
        run = self.check("--only", "pure", *self.expecting('[expected_failures]\nno_such_test = "x"\n'), code=2)
        self.assert_holds(run.stderr, "no_such_test", "conformance.toml")

    def test_the_page_lists_the_tests(self):
        run = tool("--check")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


@thorough
class ThoroughConformanceTest(Case):
    def test_plugins_that_ship_conform(self):
        run = tool("lion", "warmup_stable_decay", "jsonl_dataset", "jinja", "huggingface", "cross_entropy")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_options_tolerances_and_failures_are_those_of_the_authors_file(self):
        expect = self.write("conformance.toml", '''
[expected_failures]
layout_fsdp = "a tolerance below zero cannot be reached"
[tolerances]
layout_tensor = 1e-300
[[options]]
component = "optimizer:Lion"
name = "large"
values = {lr = 0.1}
''')
        answer = self.folder / "result.json"
        run = titan("check", str(PLUGINS / "lion.plugin.so"), "--conformance", "--only", "optimizer/Lion@large/l*", "--expect", expect, "--json",
                    str(answer))
        self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
        found = {test["test"].rsplit("/", 1)[1]: test for test in json.loads(answer.read_text())["tests"]}
        self.assertEqual(found["layout_fsdp"]["verdict"], "failed")  # it passes
        self.assertEqual(found["layout_tensor"]["measured"][0]["tolerance"], 1e-300)
        wide = self.write("wide.toml", "[tolerances]\nlayout_fsdp = 0.5\n")
        run = titan("check", str(PLUGINS / "lion.plugin.so"), "--conformance", "--only", "layout_fsdp", "--expect", wide)
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assert_holds(run.stderr, "layout_fsdp", "no reason")


if __name__ == "__main__":
    main()
