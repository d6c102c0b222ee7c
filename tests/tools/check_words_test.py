#!/usr/bin/env python3
"""tools/check_words.py on generated repositories: a clean one, and one for each problem that it must find."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["TITAN_SOURCE_DIR"]) / "tools/check_words.py"
LONG = "The trainer reads " + "one more word and then " * 8 + "stops.\n"
CLEAN = {"README.md": "# Titan\n\nIt trains.\n", "core/a.cpp": "// Reads a file.\n", "docs/guides/data.md": "# Data\n\nA sentence. Another one.\n"}
PLAIN = ("docs/README.md", "docs/start/install.md", "docs/start/first_run.md", "docs/start/own_text.md", "docs/start/many_ranks.md")


class CheckWords(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.git("init", "--quiet")
        self.write({**CLEAN, **{name: "# Page\n" for name in PLAIN}})
        self.run_on("--write")
        self.commit("Begin")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.root, check=True, stdout=subprocess.PIPE)

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")

    def commit(self, subject):
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", subject)

    def run_on(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, *arguments], capture_output=True, text=True)

    def assert_found(self, *parts):
        run = self.run_on()
        self.assertEqual(run.returncode, 1, run.stdout)
        for part in parts:
            self.assertIn(part, run.stderr)

    def test_a_clean_tree(self):
        run = self.run_on()
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_one_more_of_an_older_word(self):
        self.write({"core/a.cpp": "// Whoever reads a file is told.\n"})
        self.assert_found("'whoever': 1, allowed 0", "'told': 1, allowed 0", "docs/reference/glossary.md")
        self.assertEqual(self.run_on("--show", "told").stdout, "core/a.cpp:1: // Whoever reads a file is told.\n")

    def test_counts_may_fall_and_are_not_raised(self):
        self.write({"core/b.cpp": "// stray\n"})
        self.assertIn("more than tests/words.json allows: stray", self.run_on("--write").stderr)
        noted = json.loads((self.root / "tests/words.json").read_text())
        (self.root / "tests/words.json").write_text(json.dumps({**noted, "stray": 2}))
        self.assertEqual(self.run_on().returncode, 0)
        self.assertEqual(self.run_on("--write").returncode, 0)
        self.assertEqual(json.loads((self.root / "tests/words.json").read_text())["stray"], 1)

    def test_a_long_sentence_in_a_page(self):
        self.write({"docs/guides/data.md": f"# Data\n\n{LONG}"})
        self.assert_found("sentences of more than 35 words: 1, allowed 0")
        self.assertIn("docs/guides/data.md:3: 44 words: The trainer reads", self.run_on("--show", "long").stdout)

    def test_code_and_tables_have_no_sentences(self):
        self.write({"docs/guides/data.md": f"# Data\n\n```\n{LONG}```\n\n| {LONG.strip()} |\n"})
        self.assertEqual(self.run_on().returncode, 0)

    def test_a_page_names_what_there_is(self):
        self.write({"core/a.cpp": "void read_file();\n", "docs/guides/data.md": "# Data\n\n`reader::read_file()` or `no_proxy`.\n"})
        self.assert_found("docs/guides/data.md: `reader::read_file()` names an identifier that does not exist")
        self.write({"core/a.cpp": "namespace reader { void read_file(); }\n"})
        self.assertEqual(self.run_on().returncode, 0)
        self.write({"docs/guides/data.md": "# Data\n\n`core/b`\n"})
        self.assert_found("docs/guides/data.md: `core/b` names an identifier")
        self.write({"docs/guides/data.md": "# Data\n\n`core/a`, `core/a.cpp` and `core/`\n"})
        self.assertEqual(self.run_on().returncode, 0)
        self.write({"docs/guides/data.md": "# Data\n\n`read_files`\n"})
        self.assert_found("docs/guides/data.md: `read_files` names an identifier that does not exist")

    def test_a_plain_page_has_none_of_them(self):
        noted = json.loads((self.root / "tests/words.json").read_text())
        self.write({"docs/start/install.md": "Read it beside the other.\n", "tests/words.json": json.dumps({**noted, "beside": 9})})
        self.assert_found("docs/start/install.md:1: 'beside'")

    def test_a_long_subject_of_a_commit(self):
        self.write({"core/c.cpp": "// x\n"})
        self.commit("Say so much in the subject of one commit that nobody reads it to the end")
        self.assertEqual(self.run_on().returncode, 0)
        self.write({"core/d.cpp": "// x\n"})
        self.commit("Say so much in the subject of one commit that nobody reads it to the end.")
        self.assert_found("the subject of a commit has 73 characters, at most 72 are allowed: Say so much")


if __name__ == "__main__":
    unittest.main()
