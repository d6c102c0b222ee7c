"""Full disks and read-only file systems, mounted for the test: each is an error that names the file, and complete
checkpoints stay unchanged. All tests are skipped if no mount namespace can be made."""

import functools
import shlex
import shutil
import subprocess
import tempfile
import unittest

from checkpoint_faults_test import EVERY_STEP, UNTOUCHED, ReadOnlyCase
from harness import HANG, ROOT, main, metrics
from ranks_test import bare_environment


@functools.cache
def can_mount():
    """A private mount namespace needs no privileges on most systems, but some forbid it."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        done = subprocess.run(["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", folder],
                              capture_output=True)
        return done.returncode == 0


@unittest.skipUnless(can_mount(), "no mount namespace can be made here")
class MountTest(ReadOnlyCase):
    """While a run saves after each step."""

    def in_mount_namespace(self, mount, arguments, code):
        """Runs the job after `mount`, and keeps its files in `self.folder / "kept"`. Returns standard error."""
        script = (f"{mount}\n{shlex.join(map(str, self.command(1, *arguments)))}\ncode=$?\n"
                  f"cp -r {shlex.quote(str(self.saved))} {shlex.quote(str(self.folder / 'kept'))}\nexit $code")
        run = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", script], cwd=ROOT, env=bare_environment(),
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stderr

    def test_disk_full(self):
        """Two checkpoints fit, the third does not."""
        for mode in ("disabled", "async"):
            with self.subTest(mode):
                self.out, kept = self.folder / mode, self.folder / "kept"
                shutil.rmtree(kept, ignore_errors=True)
                self.saved.mkdir(parents=True)
                said = self.in_mount_namespace(f"mount -t tmpfs -o size=12m tmpfs {self.saved}",
                                               ["--training.steps", 5, *EVERY_STEP, "--checkpoint.async_mode", mode], code=1)
                self.assert_holds(said, str(self.saved / "step-3"), "-rank-00000.safetensors", "No space left on device", UNTOUCHED)
                self.assertEqual(list(self.assert_sound(kept)), [1, 2])
                self.assertEqual(sorted(path.name for path in kept.iterdir()), ["step-1", "step-2"])
                self.assertEqual(metrics(self.out)[-1]["step"], 5 if mode == "async" else 3)
                if mode == "async":  # every interval tries again, and the last attempt decides
                    for step in (3, 4, 5):
                        self.assertIn(f"the checkpoint of step {step} could not be written", said)
                    self.assertIn("the last checkpoint is not complete", said)

    def test_read_only_file_system(self):
        for mode in ("disabled", "async"):
            with self.subTest(mode):
                before, arguments = self.read_only(mode)
                shutil.rmtree(self.folder / "kept", ignore_errors=True)
                said = self.in_mount_namespace(f"mount --bind {self.saved} {self.saved}; mount -o remount,ro,bind {self.saved}",
                                               arguments, code=1)
                self.check_read_only(mode, said, before, "Read-only file system")


if __name__ == "__main__":
    main()
