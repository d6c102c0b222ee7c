"""The harness itself: exit codes of files with skipped or failed tests, random numbers, and permissions that bind root too."""

import os
import subprocess
import sys

from harness import ROOT, SKIPPED, Case, main, without_privileges

FILE = """import unittest
from harness import Case, main


class Example(Case):
    def test_passes(self):
        pass

    @unittest.skip("not here")
    def test_is_skipped(self):
        self.fail("it ran")

    def test_skips_itself(self):
        self.skipTest("not here")

    def test_fails(self):
        self.fail("as it should")

    def test_draws(self):
        print("drawn", self.chance().random())


@unittest.skip("none of it here")
class AllSkipped(Case):
    def test_one(self):
        self.fail("it ran")


if __name__ == "__main__":
    main()
"""


class MainTest(Case):
    def ends(self, *tests, code, **env):
        self.write("example_test.py", FILE)
        path = os.pathsep.join([str(ROOT / "tests/end_to_end"), os.environ.get("PYTHONPATH", "")])
        run = subprocess.run([sys.executable, self.folder / "example_test.py", *tests], capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": path, **env})
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def test_a_pass_and_a_failure(self):
        self.ends("Example.test_passes", code=0)
        self.ends("Example.test_fails", code=1)
        self.ends("Example.test_fails", "Example.test_is_skipped", code=1)

    def test_all_that_is_skipped_is_no_pass(self):
        self.ends("Example.test_is_skipped", code=SKIPPED)
        self.ends("Example.test_skips_itself", "AllSkipped", code=SKIPPED)

    def test_a_skip_beside_a_pass_is_a_failure(self):
        for skipped in ("Example.test_is_skipped", "Example.test_skips_itself", "AllSkipped"):
            self.assertIn("skipped while others", self.ends("Example.test_passes", skipped, code=1).stderr)

    def test_a_seed_draws_the_same_again(self):
        drawn = lambda **env: self.ends("Example.test_draws", code=0, **env).stdout
        self.assertIn("TITAN_TEST_SEED=7 draws the same again", drawn(TITAN_TEST_SEED="7"))
        self.assertEqual(drawn(TITAN_TEST_SEED="7"), drawn(TITAN_TEST_SEED="7"))
        self.assertNotEqual(drawn(TITAN_TEST_SEED="7"), drawn(TITAN_TEST_SEED="8"))


class RightsTest(Case):
    def test_bind_a_child_of_root(self):
        self.folder.chmod(0o555)
        try:
            run = subprocess.run(["touch", self.folder / "file"], capture_output=True, text=True, **without_privileges())
        finally:
            self.folder.chmod(0o755)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    main()
