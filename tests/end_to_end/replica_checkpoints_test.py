"""The checkpoints of replica groups: one group saves for all, another one when it is lost, and none touches what another writes or reads."""

import fcntl
import itertools
import os
import signal
import time

import lighthouse
from harness import main, titan
from replica_groups import CHECKPOINTS, ENDLESS, Replicas, last_event


class ReplicaCheckpointsTest(Replicas):
    def test_one_group_saves_and_all_start_from_it_again(self):
        groups = [self.start(replica, *CHECKPOINTS, steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(12, *groups)
        for group in groups:
            group.process.kill()
        self.finish(*groups, code=-signal.SIGKILL)
        saved = [[line for line in group.said().splitlines() if " info saved step " in line] for group in groups]
        self.assertEqual(sorted(map(bool, saved)), [False, True], saved)
        again = [self.start(replica, *CHECKPOINTS, steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(20, *again)
        for group in again:
            self.assertIn("resumed after step 10 from", group.said())
        self.stop(*again)
        self.assert_as_undisturbed(self.undisturbed(again[0].step() + 1), 0, 1)
        self.assert_nothing_is_left()

    def test_the_next_group_saves_after_the_one_that_saved_was_lost(self):
        groups = [self.start(replica, *CHECKPOINTS, "--checkpoint.async_mode=async", steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(7, *groups)
        first = next(group for group in groups if " info saved step " in group.said())
        second = groups[1 - first.replica]
        first.strike("save", signal.SIGKILL, 1000, every=5)
        self.finish(first, code=-signal.SIGKILL)
        self.wait_until(lambda: " info saved step " in second.said(), second)
        self.stop(second)
        step = second.step()
        third = self.start(first.replica, *CHECKPOINTS, steps=step + 5)
        self.finish(third)
        self.assertIn(f"resumed after step {step} from", third.said())
        self.assert_as_undisturbed(self.undisturbed(step + 5), 0, 1)

    def test_a_checkpoint_that_another_group_reads_stays(self):
        saving = ["--checkpoint.enable", "--checkpoint.interval=5", "--checkpoint.keep_latest_k=2"]
        group = self.start(0, *saving, steps=ENDLESS)
        first, steps = self.out / "checkpoint" / "step-5", lambda: {path.name for path in (self.out / "checkpoint").glob("step-*")}
        self.wait_until(lambda: (first / "manifest.json").exists(), group)
        with open(first / "manifest.json") as manifest:
            fcntl.flock(manifest, fcntl.LOCK_SH)  # as a group that starts
            self.wait_until(lambda: "step-20" in steps() and "step-10" not in steps(), group)
            self.assertIn("step-5", steps())
        self.wait_until(lambda: "step-5" not in steps(), group)
        self.stop(group)

    def stop_in_save(self, group):
        """Stops rank 1 of the group after rank 0 has written its files of a step, but not the manifest. Returns the process and the step."""
        for delay in itertools.cycle((0, 500, 1000, 2000, 4000)):
            before = last_event(group.folder, b'"strike"', rank=1)
            group.strike("save", signal.SIGSTOP, delay, every=5, rank=1)
            self.wait_until(lambda: last_event(group.folder, b'"strike"', rank=1) != before, group)
            event = last_event(group.folder, b'"strike"', rank=1)
            folder = self.out / "checkpoint" / f"step-{event['step']}"
            for _ in range(50):  # in vain if rank 1 stopped before or after it wrote
                if any(folder.glob("state-rank-00000.json")) and not (folder / "manifest.json").exists():
                    return event["pid"], event["step"]
                time.sleep(0.02)
            os.kill(event["pid"], signal.SIGCONT)

    def test_groups_that_do_not_know_of_each_other_do_not_mix_their_files(self):
        """As after a vote that only one of them lost: both write the same step."""
        another = lighthouse.Lighthouse(**self.LIGHTHOUSE)
        self.addCleanup(another.__exit__)
        saving = ["--checkpoint.enable", "--checkpoint.interval=5", "--checkpoint.keep_latest_k=0", "--checkpoint.async_mode=async"]
        first = self.start(0, *saving, steps=ENDLESS, ranks=2)
        self.wait_for_step(2, first)
        stopped, step = self.stop_in_save(first)
        # as if the first group saved this step once more: a start does not put the earlier one back meanwhile
        aside = self.out / "checkpoint" / f"replaced-step-{step}"
        aside.mkdir()
        (aside / "manifest.json").write_text("{}")
        second = self.start(1, *saving, steps=ENDLESS, url=another.url)
        self.wait_until(lambda: second.step() > step + 5, second)
        self.assertTrue((self.out / "checkpoint" / f"step-{step}" / "state-rank-00000.json").exists())
        self.assertTrue(aside.exists())
        os.kill(stopped, signal.SIGCONT)
        self.wait_until(lambda: f"saved step {step} in" in first.said() or f"of step {step} could not" in first.said(), first, second)
        self.stop(first)
        last = second.step()
        self.wait_until(lambda: any(f"saved step {later} in" in second.said() for later in range(last + 1, last + 30)), second)
        self.stop(second)
        complete = [path.parent for path in (self.out / "checkpoint").glob("step-*/manifest.json")]
        self.assertIn(f"step-{step}", [folder.name for folder in complete])
        self.assertFalse(aside.exists())
        for folder in complete:
            verified = titan("inspect", "--verify", folder)
            self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertIn("another job saves in", second.said())


if __name__ == "__main__":
    main()
