"""titan.schema.json with software that we did not write: every recipe is valid by jsonschema, taplo and tombi, and each planted mistake is
found. Skipped where one of the three is missing."""

import copy
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import tomllib
import unittest

from harness import ROOT, Case, main, titan

BIN = pathlib.Path(__import__("sys").executable).parent
SCHEMA = ROOT / "train_configs/titan.schema.json"
RECIPES = sorted([*(ROOT / "train_configs").rglob("*.toml"), *(ROOT / "experiments").glob("*/*.toml")])
LINTERS = {"taplo": ["taplo", "lint"], "tombi": ["tombi", "lint", "--offline"]}


def found_program(name):
    return BIN / name if (BIN / name).exists() else shutil.which(name)


MISSING = [name for name in LINTERS if not found_program(name)] + ([] if importlib.util.find_spec("jsonschema") else ["jsonschema"])

# Each: the section, the wrong line, and the programs that find it.
BOTH = {"jsonschema", "taplo", "tombi"}
MISTAKES = [
    ("training", "stepz = 3", BOTH),
    ("training", 'steps = "3"', BOTH),
    ("training", "steps = 2.5", BOTH),
    ("training", "steps = true", BOTH),
    ("training", "local_batch_size = 0", BOTH),
    ("training", "seq_len = -1", BOTH),
    ("training", 'mixed_precision_param = "bf16"', BOTH),
    ("trainin", "steps = 3", BOTH),
    ("optimizer", "lr = 0", BOTH),
    ("optimizer", "beta1 = 1.5", BOTH),
    ("optimizer", 'name = "Adamm"', BOTH),
    ("optimizer", "momentun = 0.9", BOTH),
    ("model", 'converters = ["quantize.linear.float88"]', BOTH),
    ("model", 'converters = "lora"', BOTH),
    ("metrics", 'loggers = ["console", 3]', BOTH),
    ("logger.tensorbord", "", BOTH),
    ("logger.prometheus", "fil = 1", BOTH),
    ("quantize.linear.float8", 'recipe_name = "row"', BOTH),
    ("quantize.linear.float9", "", BOTH),
    ("data.sources.web", "weight = 0", BOTH),
    ("data.sources.web", 'data_set = "c4"', BOTH),
    ("optimizer.groups.norms", 'pattern = "norm"', BOTH),
    ("checkpoint", 'enable = "yes"', BOTH),
    ("parallelism", 'pipeline_parallel_schedule = "1B1F"', BOTH),
    ("activation_checkpoint", 'mode = "fulll"', BOTH),
]


def opened(schema, recipe):
    """The schema for a recipe with a model or an optimizer of a third party that is not installed: their sections accept any option."""
    sections = [name for name in ("model", "optimizer") if "/" in recipe.get(name, {}).get("name", "")]
    if not sections:
        return schema
    result = copy.deepcopy(schema)
    for name in sections:
        section = result["properties"][name]
        section["additionalProperties"] = True
        if "groups" in section["properties"]:
            section["properties"]["groups"]["additionalProperties"]["additionalProperties"] = True
    return result


@unittest.skipIf(MISSING, f"not installed: {' '.join(MISSING)}; pip install {' '.join(MISSING)}")
class SchemaTest(Case):
    def setUp(self):
        super().setUp()
        import jsonschema
        self.schema = json.loads(SCHEMA.read_text())
        self.validator = jsonschema.Draft4Validator

    def lint(self, name, file):
        """What a linter says of a file, without colours, and its exit code. Files of other folders keep their relative schema."""
        program, *rest = LINTERS[name]
        run = subprocess.run([found_program(program), *rest, file], capture_output=True, text=True, cwd=self.folder)
        return run.returncode, re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr)

    def test_the_file_is_what_the_program_writes_and_a_valid_schema(self):
        self.validator.check_schema(self.schema)
        written = titan("schema")
        self.assertEqual(written.returncode, 0, written.stderr)
        if all(re.search(rf"(?m)^{kind} +{name} ", titan("list").stdout) for kind, name in (("dataset", "parquet"), ("device", "cuda"))):
            self.assertEqual(json.loads(written.stdout), self.schema, "run tools/reference_pages.py")

    def test_every_recipe_is_valid(self):
        for file in RECIPES:
            name, text = str(file.relative_to(ROOT)), file.read_text()
            recipe = tomllib.loads(text)
            wrong = [error.message for error in self.validator(opened(self.schema, recipe)).iter_errors(recipe)]
            self.assertEqual(wrong, [], name)
            if opened(self.schema, recipe) is not self.schema:
                continue
            directive = re.match(r"#:schema (\S+)\n\n", text)
            self.assertTrue(directive, f"{name} does not begin with '#:schema FILE' and an empty line")
            self.assertEqual((file.parent / directive[1]).resolve(), SCHEMA, name)
            for linter in LINTERS:
                code, says = self.lint(linter, file)
                self.assertEqual(code, 0, f"{linter}: {says}")
                warnings = [line for line in says.splitlines() if line.startswith(("Warning", "Error")) or "WARN" in line]
                if file.parent.name == "legacy":  # keys of 2024, which are accepted and deprecated
                    warnings = [line for line in warnings if "is deprecated" not in line]
                self.assertEqual(warnings, [], f"{linter} {name}")

    def test_planted_mistakes_are_found(self):
        shutil.copy(SCHEMA, self.folder / "titan.schema.json")
        good = self.write("good.toml", '#:schema ./titan.schema.json\n\n[optimizer]\nname = "acme/mine"\nlr = 0.1\n[logger."acme/x"]\nfree = 1\n')
        self.assertEqual({linter: self.lint(linter, good)[0] for linter in LINTERS}, {linter: 0 for linter in LINTERS})
        for section, line, finders in MISTAKES:
            text = f"#:schema ./titan.schema.json\n\n[{section}]\n{line}\n"
            file = self.write("wrong.toml", text)
            found = {"jsonschema"} if list(self.validator(self.schema).iter_errors(tomllib.loads(text))) else set()
            for linter in LINTERS:
                code, says = self.lint(linter, file)
                if code or "Warning" in says:
                    found.add(linter)
            with self.subTest(section=section, line=line):
                self.assertEqual(found, finders)


if __name__ == "__main__":
    main()
