#!/usr/bin/env python3
"""The core names no plugin: strings in core/ may contain names of shipped components only in files of data. And only
one place reads the environment."""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
KINDS = ("model", "converter", "parallelism", "pipeline_schedule", "activation_checkpoint", "compile_backend", "optimizer", "lr_scheduler", "loss",
         "dataset", "tokenizer", "chat_template", "logger", "watcher", "device", "command")
# defaults of sections, components that the core chooses itself, older names, features that are not
# built yet
DATA = {"core/config/schema/job_sections.h", "core/config/selection/default_plugins.h", "core/config/legacy/legacy_table.cpp",
        "core/config/legacy/plugin_keys.h",
        "core/config/legacy/legacy_names.cpp", "core/config/sources/legacy_requests.cpp", "core/config/selection/not_built.cpp"}
# words with another meaning at that place: (file, word)
OTHER_MEANINGS = {
    ("core/commands/describe.cpp", "csv"),                          # a flag of titan describe
    ("core/config/rules/layout_rules.cpp", "context"), ("core/config/rules/layout_rules.cpp", "pipeline"),  # degrees in a message
    ("core/config/rules/layout_rules.cpp", "tensor"),
    ("core/data/conversation_tokens.cpp", "messages"),  # a member of conversations
    ("core/data/row_reader.cpp", "tokens"),   # a member of JSON
    ("core/config/schema/job_schema_run.cpp", "profiling"), ("core/config/schema/job_schema_other.cpp", "fingerprints"),  # keys of v0.2.2 and of Titan
    ("core/plugin/compatibility.cpp", "cuda"), ("core/plugin/manifest.cpp", "cuda"),            # a field of manifests
    ("core/plugin/compatibility.cpp", "plugin"), ("core/plugin/manifest.cpp", "plugin"),        # the same, and not titan plugin
    ("core/commands/declarations.cpp", "plugin"),                                               # a member of JSON
    ("core/plugin/listing.cpp", "plugin"),                                                      # title of a column
}


def provided_names():
    pattern = re.compile(r"\b(?:" + "|".join(KINDS) + r"):([\w./]+)")
    return {name for path in (ROOT / "plugins").rglob("CMakeLists.txt") for name in pattern.findall(path.read_text())}


def code_of(folder):
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in (".h", ".cpp"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                yield str(path.relative_to(ROOT)), number, line.split("//")[0]


class PluginNamesTest(unittest.TestCase):
    def test_the_core_names_plugins_in_files_of_data_only(self):
        names = provided_names()
        self.assertGreater(len(names), 40)
        used, found = set(), []
        for path, number, code in code_of("core"):
            for word in set(re.findall(r'"([^"]*)"', code)) & names:
                if (path, word) in OTHER_MEANINGS:
                    used.add((path, word))
                elif path not in DATA:
                    found.append(f"{path}:{number}: {word}")
        self.assertEqual(found, [])
        self.assertEqual(OTHER_MEANINGS - used, set(), "no longer there")

    def test_the_environment_is_read_in_one_place(self):
        found = [f"{path}:{number}" for path, number, code in code_of("core")
                 if re.search(r"\bgetenv\(|\benviron\b", code)]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
