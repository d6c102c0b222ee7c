#!/usr/bin/env python3
"""tools/touched_tests.py: which tests a change requires, by the real tests/rooms.toml and in generated git
repositories."""

import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tools"))
import touched_tests  # noqa: E402

ROOMS = tomllib.loads((SOURCE / "tests/rooms.toml").read_text())
THOROUGH = touched_tests.thorough_tests(SOURCE)
DAY = touched_tests.DAY


class Rooms(unittest.TestCase):
    def called(self, *files):
        return set(touched_tests.chosen(files, ROOMS, THOROUGH))

    def test_every_row_names_a_folder_and_tests_that_exist(self):
        for folder, patterns in ROOMS.items():
            self.assertTrue((SOURCE / folder).exists(), folder)
            for pattern in patterns:
                self.assertTrue(fnmatch.filter(THOROUGH, pattern), f"{folder}: {pattern}")

    def test_what_no_row_names_calls_for_all(self):
        for file in ("sdk/include/titan/model.h", "core/train/trainer.cpp", "plugins/parallelism/fsdp/unit.cpp", "CMakeLists.txt",
                     "core/a_new_room/file.cpp", ".ci/run", "run_tests.sh", "tests/CMakeLists.txt"):
            self.assertEqual(self.called(file), set(THOROUGH), file)

    def test_a_row_calls_for_its_tests_alone(self):
        self.assertEqual(self.called("plugins/lr_schedulers/warmup_stable_decay/plugin.cpp", "tools/setup.sh"), set())
        self.assertEqual(self.called("docs/guides/data.md", "README.md"), {"end_to_end.docs.thorough", "end_to_end.docs_commands"})
        self.assertEqual(self.called("plugins/loggers/console/plugin.cpp"), {"end_to_end.terminal.thorough"})
        self.assertIn("end_to_end.checkpoint_kills", self.called("core/checkpoint/writer.cpp"))
        self.assertNotIn("end_to_end.new_plugin.thorough", self.called("core/checkpoint/writer.cpp"))
        self.assertEqual(self.called("core/trainer/x.cpp"), set(THOROUGH))  # no row: core/train is another folder

    def test_a_test_that_changed_is_run(self):
        self.assertEqual(self.called("tests/end_to_end/new_plugin_test.py"), {"end_to_end.new_plugin.thorough"})
        self.assertEqual(self.called("tests/end_to_end/train_test.py"), set())
        shared = self.called("tests/end_to_end/harness.py")
        self.assertEqual(shared, {test for test in THOROUGH if test.startswith("end_to_end.")})


class History(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.now = time.time()
        self.git("init", "-q")

    def git(self, *words, age=0.0):
        date = f"{int(self.now - age)} +0000"
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True,
                       env={**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date})

    def commit(self, name, days):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{days}")
        self.git("add", "-A")
        self.git("commit", "-qm", name, age=days * DAY)

    def test_what_changed_since_the_newest_commit_that_is_older_than_a_day(self):
        self.commit("core/old.cpp", 9)
        self.commit("core/yesterday.cpp", 1.5)
        self.commit("docs/today.md", 0.5)
        (self.root / "not_committed.txt").touch()
        base = touched_tests.base_commit(self.root, self.now)
        self.assertEqual(touched_tests.touched(self.root, base), ["docs/today.md", "not_committed.txt"])

    def test_a_young_repository_has_no_such_commit(self):
        self.commit("core/today.cpp", 0.2)
        self.assertIsNone(touched_tests.base_commit(self.root, self.now))

    def test_a_file_that_moved_counts_at_both_places(self):
        self.commit("core/a.cpp", 3)
        self.git("mv", "core/a.cpp", "core/b.cpp")
        self.git("commit", "-qm", "move", age=0)
        base = touched_tests.base_commit(self.root, self.now)
        self.assertEqual(touched_tests.touched(self.root, base), ["core/a.cpp", "core/b.cpp"])


if __name__ == "__main__":
    unittest.main()
