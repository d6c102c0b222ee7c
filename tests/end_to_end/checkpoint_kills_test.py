"""Runs that end early: kill -9 during a save, one rank of an elastic group, signals that request a checkpoint. Complete
checkpoints stay valid, and the next start resumes from the newest one as if nothing had happened.

    checkpoint_kills_test.py --kills 100     # that many instead of half a dozen, with a report

TITAN_TEST_SEED, which is printed, determines the moments.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import time

import torch

from checkpoint_case import CheckpointCase, Live, complete_steps, content, status_of, whole_state
from failing_rank_test import processes_with
from harness import HANG, TITAN, main, metrics
from ranks_test import ENDLESS, TORCHRUN

KILLS = 6
SAVED_EXIT_CODE = 75
COMPARED = ("loss_metrics/global_avg_loss", "grad_norm", "lr", "n_tokens_seen")
FSDP = ["--parallelism.data_parallel_shard_degree", "2"]


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            found += map(int, (task / "children").read_text().split())
    return found


def rank_of(pid):
    variables = []
    with contextlib.suppress(OSError):
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((int(text[5:]) for text in variables if text.startswith(b"RANK=")), None)


class KillTest(CheckpointCase):
    """Each round starts the run again, checks that it resumes from the newest complete checkpoint, and kills it at a random
    moment from its first save on."""

    def setUp(self):
        super().setUp()
        self.draw = self.chance()
        self.caught, self.gone_on = 0, 0

    def folders(self):
        """Identifies a folder, to distinguish a new one from one that an earlier kill left behind."""
        there = ((path.name, status_of(path)) for path in self.saved.glob("step-*"))
        return {(name, status.st_ctime_ns) for name, status in there if status}

    def round(self, ranks, mode):
        before = {step: content(path) for step, path in complete_steps(self.saved).items()}
        newest, there = max(before, default=0), self.folders()
        with Live(self, self.command(ranks, *ENDLESS, *(FSDP if ranks > 1 else []), "--checkpoint.interval", 1,
                                     "--checkpoint.keep_latest_k", 3, "--checkpoint.async_mode", mode)) as live:
            live.wait_until(lambda: self.folders() - there)
            wanted = newest + self.draw.randrange(4)
            live.wait_until(lambda: max(complete_steps(self.saved), default=0) >= wanted and
                            self.resumed_after(live.errors()) == newest)  # output that the launcher has not passed on would be lost
            time.sleep(self.draw.uniform(0, 0.2))
            # killing the launcher also kills its ranks
            victims = [live.process.pid] if ranks == 1 else self.draw.choice([[live.process.pid], *([pid] for pid in children(
                live.process.pid))])
            os.kill(victims[0], signal.SIGKILL)
            live.finish()
        self.wait_until_all_are_gone()
        self.assertEqual(self.resumed_after(live.errors()), newest, live.errors())
        found = self.assert_sound()
        self.assertGreaterEqual(max(found, default=0), newest)
        for step in before.keys() & found.keys():
            self.assertEqual(content(found[step]), before[step])
        self.caught += any(step not in found for step in self.steps_there())
        self.gone_on += max(found, default=0) - newest

    def wait_until_all_are_gone(self):
        deadline = time.monotonic() + HANG
        while processes_with(str(self.folder)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assert_all_are_gone()

    def steps_there(self):
        return {int(path.name[5:]) for path in self.saved.glob("step-*")}

    def kill(self, share, ranks, mode):
        kills = max(2, round(KILLS * share))
        for number in range(kills):
            with self.subTest(ranks=ranks, mode=mode, kill=number):
                self.round(ranks, mode)
        newest = max(complete_steps(self.saved), default=0)
        run = self.run_ranks(ranks, *(FSDP if ranks > 1 else []), "--training.steps", newest + 2)
        self.assertEqual(self.resumed_after(run.stderr), newest)
        self.assertEqual(max(self.assert_sound()), newest + 2)
        self.assertEqual([path.name for path in self.saved.rglob("*.tmp")], [])
        self.assertEqual(list(self.saved.glob("replaced-*")), [])
        self.assertEqual([line["step"] for line in metrics(self.out)][-2:], [newest + 1, newest + 2])
        print(f"{kills} kills, {ranks} rank(s), {mode}: {self.caught} left an unfinished checkpoint, {self.gone_on} steps were "
              f"completed before the kills; everything complete verifies", flush=True)

    def test_one_rank_that_waits_for_its_saves(self):
        self.kill(0.3, 1, "disabled")

    def test_one_rank_that_saves_in_the_background(self):
        self.kill(0.4, 1, "async")

    def test_two_ranks_that_wait(self):
        self.kill(0.15, 2, "disabled")

    def test_two_ranks_that_save_in_the_background(self):
        self.kill(0.15, 2, "async")

    def test_while_a_complete_checkpoint_is_written_again(self):
        """After load_step, existing steps are saved a second time: one version of each stays complete."""
        self.run_ranks(1, "--training.steps", 6, "--checkpoint.interval", 2)
        original = self.folder / "original"
        self.saved.rename(original)
        for number in range(max(2, KILLS // 6)):
            shutil.rmtree(self.saved, ignore_errors=True)
            shutil.copytree(original, self.saved)
            manifest = self.saved / "step-4/manifest.json"
            inode = lambda: (status := status_of(manifest)) and status.st_ino
            there = inode()
            with self.subTest(kill=number), Live(self, self.command(
                    1, *ENDLESS, "--checkpoint.interval", 2, "--checkpoint.load_step", 2, "--checkpoint.keep_latest_k", 0)) as live:
                live.wait_until(lambda: inode() != there)
                time.sleep(self.draw.uniform(0, 0.05))
                live.process.kill()
                live.finish()
                self.assert_sound()
                kept = {int(path.parent.name.split("-")[-1]): json.loads(path.read_text())["lineage"]["branch"]
                        for path in sorted(self.saved.glob("*step-*/manifest.json"))}
                self.assertLessEqual({2, 4, 6}, set(kept))
                # a version that was moved aside is restored if the second was never completed; the newer branch
                # continues
                newest = max(step for step, branch in kept.items() if branch == max(kept.values()))
                run = self.run_ranks(1, "--training.steps", newest + 2, "--checkpoint.interval", 2)
                self.assertEqual(self.resumed_after(run.stderr), newest)
                self.assert_sound()


class UndisturbedCase(CheckpointCase):
    def assert_as_undisturbed(self, ranks, steps, *arguments):
        """Metrics since the last resume and the last checkpoint are bitwise equal to an uninterrupted run."""
        disturbed, self.out = self.out, self.folder / "undisturbed"
        self.run_ranks(ranks, "--training.steps", steps, "--checkpoint.interval", steps, *arguments)
        values = lambda folder: {line["step"]: [line[tag] for tag in COMPARED] for line in metrics(folder)}
        found, expected = values(disturbed), values(self.out)
        self.assertEqual(max(found), steps)
        self.assertEqual(found, {step: expected[step] for step in found})
        left, right = (whole_state(folder / "checkpoint" / f"step-{steps}") for folder in (disturbed, self.out))
        self.assertEqual(sorted(left), sorted(right))
        for name, tensor in left.items():
            self.assertTrue(torch.equal(tensor, right[name]), name)


class SignalTest(UndisturbedCase):
    """SIGTERM and SIGUSR1: a checkpoint of the current step, and its own exit code."""

    def stop(self, ranks, number, *arguments):
        with Live(self, self.command(ranks, *ENDLESS, "--checkpoint.interval", 1000000, *arguments)) as live:
            live.wait_for_step(3)
            live.process.send_signal(number)
            self.assertEqual(live.finish(), SAVED_EXIT_CODE, live.errors())
        last = metrics(self.out)[-1]["step"]
        self.assertEqual(list(self.assert_sound()), [last])
        self.assertEqual([path.name for path in self.saved.iterdir()], [f"step-{last}"])
        self.assert_holds(live.errors(), signal.Signals(number).name, f"saved step {last} ")
        run = self.run_ranks(ranks, "--training.steps", last + 2, *arguments)
        self.assertEqual(self.resumed_after(run.stderr), last)
        self.assert_as_undisturbed(ranks, last + 2, *arguments)

    def test_sigterm(self):
        self.stop(1, signal.SIGTERM)

    def test_sigusr1_while_saving_in_the_background(self):
        self.stop(1, signal.SIGUSR1, "--checkpoint.async_mode", "async")

    def test_sigterm_to_a_group(self):
        self.stop(2, signal.SIGTERM, *FSDP)

    def test_sigusr1_to_a_group(self):
        self.stop(2, signal.SIGUSR1, *FSDP)


class ElasticTest(UndisturbedCase):
    """One of two ranks dies, twice; each time the launcher restarts the group, which resumes."""

    STEPS, INTERVAL = 200, 7
    DEATHS = ((12, 7, 1), (33, 14, 0))  # for each death: the step from which the rank dies, the checkpoint that is complete by then, and the rank

    def ranks_below(self, pid):
        found = {}
        for child in children(pid):
            with_rank = rank_of(child)
            if with_rank is not None:
                found[with_rank] = child
        return found

    def disturb(self, command, mode):
        train = self.arguments("--training.steps", self.STEPS, "--checkpoint.interval", self.INTERVAL, *FSDP,
                               "--checkpoint.async_mode", mode)
        with Live(self, [*command, *train], TMPDIR=str(self.folder)) as live:
            for deaths, (step, saved, victim) in enumerate(self.DEATHS):
                live.wait_until(lambda: live.errors().count("resumed after step") == deaths and  # of this start, not the last
                                max(live.steps(), default=0) >= step and max(complete_steps(self.saved), default=0) >= saved)
                os.kill(self.ranks_below(live.process.pid)[victim], signal.SIGKILL)
            self.assertEqual(live.finish(), 0, live.errors())
        resumed = [int(step) for step in re.findall(r"resumed after step (\d+) from", live.errors())]
        self.assertEqual(len(resumed), 2, live.errors())
        for step, (_, saved, _) in zip(resumed, self.DEATHS):
            self.assertEqual(step % self.INTERVAL, 0)
            self.assertGreaterEqual(step, saved)
        self.assert_sound()
        self.assert_all_are_gone()
        self.assert_as_undisturbed(2, self.STEPS, *FSDP)

    def test_torchrun(self):
        for mode in ("disabled", "async"):
            with self.subTest(mode):
                self.out = self.folder / mode
                self.disturb([TORCHRUN, "--no-python", "--standalone", "--nproc-per-node", "2", "--max-restarts", "2", TITAN], mode)
                shutil.rmtree(self.folder / "undisturbed")

    def test_titan_launch(self):
        self.disturb([TITAN, "launch", "--nproc", "2", "--max-restarts", "2", "--log-dir", self.logs, "--"], "async")


if __name__ == "__main__":
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    main()
