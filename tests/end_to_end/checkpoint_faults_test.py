"""Faults during a save: limits, permissions, removed folders. Each is an error that names the file, complete checkpoints stay
unchanged, and the run ends or continues as checkpoint.async_mode says."""

import contextlib
import pathlib
import re
import resource
import shutil
import signal
import tempfile

from checkpoint_case import CheckpointCase, Live, complete_steps, content
from harness import TITAN, main, metrics, without_privileges
from ranks_test import ENDLESS

UNTOUCHED = "older ones are untouched"
EVERY_STEP = ["--checkpoint.interval", 1, "--checkpoint.keep_latest_k", 0]
ASYNC = ["--checkpoint.async_mode", "async"]


class ReadOnlyCase(CheckpointCase):
    """A run whose folder becomes read-only."""

    def read_only(self, mode):
        self.out = self.folder / mode
        self.run_ranks(1, "--training.steps", 2, *EVERY_STEP)
        return content(self.saved), ["--training.steps", 4, *EVERY_STEP, "--checkpoint.async_mode", mode]

    def check_read_only(self, mode, said, before, reason):
        self.assertEqual(content(self.saved), before)
        self.assert_holds(said, "resumed after step 2", f"cannot create the checkpoint's folder '{self.saved / 'step-3'}'", reason)
        self.assertEqual(metrics(self.out)[-1]["step"], 4 if mode == "async" else 3)


class SaveFaultsTest(ReadOnlyCase):
    """While a run saves after each step."""

    def test_folder_without_the_right_to_write(self):
        for mode in ("disabled", "async"):
            with self.subTest(mode):
                before, arguments = self.read_only(mode)
                self.saved.chmod(0o555)
                run = self.run_ranks(1, *arguments, code=1, **without_privileges())
                self.saved.chmod(0o755)
                self.check_read_only(mode, run.stderr, before, "Permission denied")

    def end_well(self, live):
        """Ends a run that continued; all complete checkpoints are valid, including that of the last step."""
        live.process.send_signal(signal.SIGTERM)
        self.assertEqual(live.finish(), 75, live.errors())
        self.assertIn(metrics(self.out)[-1]["step"], self.assert_sound())

    def wait_for_saves(self, live, more):
        newest = max(complete_steps(self.saved), default=0)
        live.wait_until(lambda: max(complete_steps(self.saved), default=0) >= newest + more)

    def test_a_file_may_not_grow(self):
        """RLIMIT_FSIZE, which also binds root: the weights fit, the optimizer's states do not."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
        with self.subTest("disabled"):
            run = self.run_ranks(1, *EVERY_STEP, code=1, preexec_fn=limit)
            self.assert_holds(run.stderr, str(self.saved / "step-1/optimizer-rank-00000.safetensors"), "File too large",
                              UNTOUCHED)
            self.assertEqual(list(self.saved.iterdir()), [])
        with self.subTest("async, and the limit is lifted"):
            with Live(self, self.command(1, *ENDLESS, "--checkpoint.interval", 1, *ASYNC), {"preexec_fn": limit}) as live:
                live.wait_until(lambda: live.errors().count("the next save tries again") > 1)
                self.assertEqual(complete_steps(self.saved), {})
                self.assertIn("File too large", live.errors())
                resource.prlimit(live.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
                self.wait_for_saves(live, 2)
                self.end_well(live)
        with self.subTest("disabled, in mid-run"):
            with Live(self, self.command(1, *ENDLESS, *EVERY_STEP)) as live:
                self.wait_for_saves(live, 2)
                resource.prlimit(live.process.pid, resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
                self.assertEqual(live.finish(), 1, live.errors())
            last = metrics(self.out)[-1]["step"]
            self.assert_holds(live.errors(), "File too large", UNTOUCHED)
            self.assertNotIn(f"step-{last}", [path.name for path in self.saved.iterdir()])
            self.assertIn(last - 1, self.assert_sound())

    def test_a_rank_of_two_cannot_write(self):
        """The other ranks are informed, and rank 0 removes the folder."""
        for mode in ("disabled", "async"):
            with self.subTest(mode):
                self.out = self.folder / mode
                # ulimit counts in units of 512 or of 1,024 bytes
                script = self.write("limited", '#!/bin/sh\n[ "$RANK" = 1 ] && ulimit -S -f 1000\nexec "$@"\n')
                script.chmod(0o755)
                train = self.arguments(*EVERY_STEP, "--checkpoint.async_mode", mode, "--parallelism.data_parallel_shard_degree", 2)
                with Live(self, [TITAN, "launch", "--nproc", 2, "--log-dir", self.logs, "--program", script, "--", TITAN,
                                 *train]) as live:
                    self.assertEqual(live.finish(), 1, live.errors())
                self.assert_holds(live.errors(), "rank 1: ", "-rank-00001.safetensors", "File too large", UNTOUCHED)
                self.assertEqual(list(self.saved.iterdir()), [])
                self.assertEqual(metrics(self.out)[-1]["step"], 3 if mode == "async" else 1)

    def test_a_file_where_the_folder_should_be(self):
        with self.subTest("from the start"):
            self.write("out/checkpoint", "mine")
            run = self.run_ranks(1, code=1)
            self.assert_holds(run.stderr, str(self.saved), "Not a directory")
            self.assertEqual(self.saved.read_text(), "mine")
        self.saved.unlink()
        with self.subTest("in mid-run, async"), Live(self, self.command(1, *ENDLESS, *EVERY_STEP, *ASYNC)) as live:
            self.wait_for_saves(live, 1)
            with live.held():  # otherwise the run would create the folder again in between
                self.saved.rename(self.folder / "moved")
                self.saved.write_text("mine")
            live.wait_until(lambda: f"cannot create the checkpoint's folder '{self.saved}" in live.errors())
            self.assertEqual(self.saved.read_text(), "mine")
            with live.held():
                self.saved.unlink()
                (self.folder / "moved").rename(self.saved)
            self.wait_for_saves(live, 2)
            self.end_well(live)

    def remove_between_saves(self, live):
        """Removes all checkpoints, unless a save is in progress; returns whether it did."""
        with live.held():
            said = set(re.findall(r"saved step (\d+) in", live.errors()))
            is_between = said == {path.name[5:] for path in self.saved.glob("step-*")}
            if is_between:
                shutil.rmtree(self.saved)
            return is_between

    def test_the_folder_is_removed_between_two_saves(self):
        for mode in ("disabled", "async"):
            self.out = self.folder / mode
            with self.subTest(mode), Live(self, self.command(1, *ENDLESS, "--checkpoint.interval", 20, "--checkpoint.async_mode",
                                                             mode, "--checkpoint.keep_latest_k", 0)) as live:
                live.wait_until(lambda: "saved step 20 " in live.errors())
                live.wait_until(lambda: self.remove_between_saves(live))
                live.wait_until(lambda: complete_steps(self.saved))
                self.end_well(live)

    def test_the_folder_is_removed_during_a_save(self):
        def remove_unfinished():
            """In one step: the rest of a folder that is removed file by file could still be completed."""
            for path in self.saved.glob("step-*"):
                if not (path / "manifest.json").exists():
                    with contextlib.suppress(FileNotFoundError):  # the run may remove it at the same time
                        path.rename(pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / path.name)
        for mode in ("disabled", "async"):
            self.out = self.folder / mode
            with self.subTest(mode), Live(self, self.command(1, *ENDLESS, *EVERY_STEP, "--checkpoint.async_mode", mode)) as live:
                self.wait_for_saves(live, 1)
                reason = "could not be written"
                while reason not in live.errors() and live.process.poll() is None:
                    remove_unfinished()
                if mode == "disabled":
                    self.assertEqual(live.finish(), 1, live.errors())
                    self.assert_sound()
                else:
                    self.wait_for_saves(live, 2)
                    self.end_well(live)
                self.assert_holds(live.errors(), reason, f"{self.saved}/step-", "No such file or directory", UNTOUCHED)


if __name__ == "__main__":
    main()
