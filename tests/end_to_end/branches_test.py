"""A job keeps its results: a restart continues its own branch of checkpoints, an older branch is named and left unchanged, nothing
of an earlier run is overwritten, and two runs do not share a folder."""

import json
import re
import shutil
import signal
import subprocess
import time

from checkpoint_case import write_manifest
from checkpoint_test import CheckpointCase, compared, state
from failing_rank_test import FAULTS
from harness import HANG, ROOT, TITAN, Background, main, metrics, thorough
from ranks_test import TORCHRUN, bare_environment

SHORT = ["--training.steps", "60", "--training.global_batch_size", "2", "--lr_scheduler.warmup_steps", "2", "--checkpoint.interval", "10",
         "--metrics.no_enable_tensorboard"]
OTHER_RATE = ["--optimizer.lr", "0.002"]


class BranchesCase(CheckpointCase):
    def setUp(self):
        super().setUp()
        self.recipe = [*self.recipe, *SHORT]

    def lineage(self, step, out=None):
        return json.loads(((out or self.out) / f"checkpoint/step-{step}/manifest.json").read_text())["lineage"]

    def command(self, *more, out=None):
        return ["train", *self.recipe, "--job.dump_folder", str(out or self.out), *map(str, more)]

    def run_command(self, command, code=0, **env):
        run = subprocess.run([str(word) for word in command], cwd=ROOT, env=bare_environment(**env), stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=HANG)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run

    def train_to(self, steps, *more, out=None, code=0):
        return self.run_command([TITAN, *self.command("--training.steps", steps, *more, out=out)], code)

    def resumed_steps(self, text):
        return [int(step) for step in re.findall(r"resumed after step (\d+)", text)]


class RestartTest(BranchesCase):
    """Options that begin a branch are applied once."""

    # every process is killed at its 16th step, so a run that always restarted at step 10 would
    # never pass step 26
    KILLED = ["--plugins.paths", FAULTS, "--parallelism.further", "test/fault", "--parallelism.test/fault.rank=1",
              "--parallelism.test/fault.kind=kill", "--parallelism.test/fault.step=16"]

    def killed_again_and_again(self, *launcher, **env):
        self.train_to(20)
        straight = self.folder / "straight"
        shutil.copytree(self.out, straight)
        branch = ["--checkpoint.load_step", "10", *OTHER_RATE, "--training.steps", "50"]
        run = self.run_command([*launcher, *self.command(*branch, *self.KILLED)], **env)
        self.assertEqual(self.resumed_steps(run.stderr), [10, 20, 30, 40])
        self.assert_holds(run.stderr, "checkpoint.load_step = 10 was applied when branch 1 of this job began and is not applied again")
        self.run_command([TITAN, "launch", "--nproc", 2, "--", *self.command(*branch, out=straight)])
        theirs, ours = compared(straight), compared(self.out)
        self.assertEqual({step: ours[step] for step in range(11, 51)}, {step: theirs[step] for step in range(11, 51)})

    @thorough
    def test_titan_launch_restarts_continue_after_the_newest_save(self):
        self.killed_again_and_again(TITAN, "launch", "--nproc", 2, "--max-restarts", 3, "--")

    @thorough
    def test_restarts_of_torchrun_do_too(self):
        self.killed_again_and_again(TORCHRUN, "--no-python", "--standalone", "--nproc-per-node", 2, "--max-restarts", 3, TITAN,
                                    TMPDIR=str(self.folder))

    def test_the_same_command_after_exit_75_does_not_begin_the_optimizer_anew(self):
        self.train_to(10)
        anew = ["--checkpoint.exclude_from_loading", "optimizer", "--training.steps", "100000"]
        with Background(*self.command(*anew)) as run:
            run.wait_for("step: 13 ")
            run.process.send_signal(signal.SIGTERM)
            _, err, code = run.finish()
        self.assertEqual(code, 75, err)
        self.assert_holds(err, "checkpoint.exclude_from_loading: the optimizer's states begin anew")
        stopped = int(re.search(r"after step (\d+), which is saved", err).group(1))
        again = self.train_to(stopped + 2, *anew[:2])
        self.assertEqual(self.resumed_steps(again.stderr), [stopped])
        self.assert_holds(again.stderr, "checkpoint.exclude_from_loading was applied when branch 1 of this job began")
        self.assertNotIn("begin anew", again.stderr)
        last = state(self.out / f"checkpoint/step-{stopped + 2}")
        self.assertEqual(last["optim.step.norm.weight"][0], stopped + 2 - 10)  # since the branch began

    @thorough
    def test_initial_load_path_with_a_step_of_its_own_is_applied_once(self):
        self.train_to(20)
        out = self.folder / "next"
        first = ["--checkpoint.initial_load_path", self.out / "checkpoint", "--checkpoint.load_step", 10,
                 "--checkpoint.no_initial_load_model_only"]
        run = self.train_to(20, *first, out=out)
        self.assertEqual(self.resumed_steps(run.stderr), [10])
        parent = self.lineage(20, out)["parent"]
        self.assertEqual((parent["job"], parent["step"]), (self.lineage(10)["job"], 10))
        self.assertNotEqual(self.lineage(20, out)["job"], parent["job"])
        run = self.train_to(30, *first, out=out)
        self.assertEqual(self.resumed_steps(run.stderr), [20])

    @thorough
    def test_another_step_begins_another_branch(self):
        self.train_to(30)
        self.train_to(20, "--checkpoint.load_step", 10)
        run = self.train_to(40, "--checkpoint.load_step", 20)
        self.assertEqual(self.resumed_steps(run.stderr), [20])
        self.assertEqual([(point["branch"], point["step"]) for point in self.lineage(40)["ancestors"]], [(0, 10), (1, 20)])
        self.assertEqual(len({self.lineage(step)["job"] for step in self.steps_in()}), 1)


class StaleBranchTest(BranchesCase):
    def test_the_newest_branch_is_continued_and_the_older_one_is_left_alone(self):
        self.train_to(60)
        old = {step: compared(self.out)[step] for step in compared(self.out)}
        with Background(*self.command("--checkpoint.load_step", 10, *OTHER_RATE, "--checkpoint.keep_latest_k", 2)) as run:
            run.wait_for("step: 26 ")
            run.process.kill()
            _, err, _ = run.finish()
        self.assert_holds(err, "step-60' and 4 more (steps 20, 30, 40, 50, 60) belong to an earlier branch of this job; this start saves "
                          "as branch 1")
        self.assertEqual(self.steps_in(), [10, 20, 30, 40, 50, 60])
        kept, = (self.out / "earlier").iterdir()
        self.assertEqual(compared(kept), old)  # the steps after 10 of the earlier branch
        inspected = subprocess.run([TITAN, "inspect", self.out / "checkpoint"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(inspected, r"(?m)^ *20 .*newest complete, branch 1$")

        again = self.train_to(40, *OTHER_RATE, "--checkpoint.keep_latest_k", 2)
        self.assertEqual(self.resumed_steps(again.stderr), [20])
        self.assert_holds(again.stderr, "step-60' and 3 more (steps 30, 40, 50, 60) belong to an earlier branch")
        self.assertNotIn("begins", again.stderr)
        self.assertEqual(self.steps_in(), [30, 40, 50, 60])  # the newest two of branch 1, and the later ones of the older branch
        self.assertEqual({step: self.lineage(step)["branch"] for step in self.steps_in()}, {30: 1, 40: 1, 50: 0, 60: 0})
        self.assertEqual(self.lineage(40)["parent"]["step"], 10)

    @thorough
    def test_an_export_of_the_older_branch_does_not_end_the_job(self):
        self.train_to(30, "--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf")
        self.train_to(20, "--checkpoint.load_step", 10)
        run = self.train_to(30)
        self.assertEqual(self.resumed_steps(run.stderr), [20])

    @thorough
    def test_checkpoints_without_a_lineage_are_continued(self):
        self.train_to(20)
        for step in (10, 20):
            path = self.out / f"checkpoint/step-{step}/manifest.json"
            manifest = json.loads(path.read_text())
            del manifest["lineage"]
            write_manifest(path.parent, manifest)
        self.assertEqual(self.resumed_steps(self.train_to(30).stderr), [20])
        self.assertEqual(self.lineage(30)["branch"], 0)
        run = self.train_to(20, "--checkpoint.load_step", 10)
        self.assertEqual(self.resumed_steps(run.stderr), [10])
        self.assertEqual((self.lineage(20)["branch"], self.lineage(20)["parent"]["step"]), (1, 10))


class ChangedSettingsTest(BranchesCase):
    def test_one_line_names_what_differs(self):
        self.train_to(10)
        run = self.train_to(12, *OTHER_RATE, "--training.max_norm", "0.5", "--training.global_batch_size", "4", "--metrics.log_freq", "2")
        line, = [line for line in run.stderr.splitlines() if "continues with other settings" in line]
        for part in ("optimizer.lr = 0.002 (was 8e-04)", "training.max_norm = 0.5 (was 1.0)", "training.steps = 12 (was 10)",
                     "training.global_batch_size = 4 (was 2)", "tokens per step = 256 (was 128)"):
            self.assertIn(part, line)
        self.assertNotIn("log_freq", line)
        self.assertNotIn("other settings", self.train_to(12, *OTHER_RATE, "--training.max_norm", "0.5", "--training.global_batch_size",
                                                         "4", "--checkpoint.load_step", "10").stderr.replace("settings than those", ""))

    @thorough
    def test_the_same_settings_say_nothing(self):
        self.train_to(10, "--training.steps", "20", "--checkpoint.no_last_save_model_only")
        run = self.train_to(20, "--training.steps", "20")
        self.assertNotIn("other settings", run.stderr)

    @thorough
    def test_more_ranks_with_an_open_batch_say_how_many_tokens(self):
        open_batch = ["--training.global_batch_size", "-1", "--training.steps", "12"]
        self.train_to(10, *open_batch[:2])
        run = self.run_command([TITAN, "launch", "--nproc", 2, "--", *self.command(*open_batch)])
        self.assertIn("tokens per step = 128 (was 64)", run.stderr)


class EarlierRunTest(BranchesCase):
    OFF = ["--checkpoint.no_enable"]

    def test_a_second_start_keeps_the_results_of_the_first(self):
        self.train_to(3, *self.OFF)
        names = ["metrics.jsonl", "history.jsonl", "fingerprints.jsonl", "config.toml", "timeline/rank_0.jsonl", "status/rank_0.json"]
        before = {name: (self.out / name).read_bytes() for name in names if (self.out / name).exists()}
        self.assertGreaterEqual(len(before), 5)
        run = self.train_to(5, *self.OFF)
        kept, = (self.out / "earlier").iterdir()
        self.assertIn(f"are now in '{kept}'", run.stderr)
        self.assertEqual({name: (kept / name).read_bytes() for name in before}, before)
        self.assertEqual([line["step"] for line in metrics(self.out)], [1, 2, 3, 4, 5])
        compare = subprocess.run([TITAN, "compare", kept, self.out], capture_output=True, text=True, timeout=HANG)
        self.assertIn("training.steps", compare.stdout)
        self.run_command([TITAN, "report", kept, "--out", self.folder / "report.html"])
        self.train_to(2, *self.OFF)
        self.assertEqual(len(list((self.out / "earlier").iterdir())), 2)

    @thorough
    def test_tensorboard_has_a_folder_for_each_start(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        for number in (2, 3):
            self.train_to(number, *self.OFF, "--metrics.enable_tensorboard")
        seen = []
        for folder in sorted((self.out / "tb").iterdir()):
            events = EventAccumulator(str(folder))
            events.Reload()
            seen.append([event.step for event in events.Scalars("grad_norm")])
        self.assertEqual(seen, [[1, 2], [1, 2, 3]])


class FolderLockTest(BranchesCase):
    def test_a_second_run_in_the_folder_is_refused_until_the_first_is_gone(self):
        with Background(*self.command("--training.steps", 100000)) as run:
            run.wait_for("step:  2 ")
            before = (self.out / "config.toml").read_bytes()
            for launcher in ([TITAN], [TITAN, "launch", "--nproc", 2, "--"]):
                second = self.run_command([*launcher, *self.command("--training.steps", 5)], code=2)
                self.assert_holds(second.stderr, f"job.dump_folder: the folder '{self.out}' is in use by another run (process "
                                  f"{run.process.pid} on host ", "end that run, or choose another folder")
            self.assertEqual((self.out / "config.toml").read_bytes(), before)
            begin = time.monotonic()
            run.process.kill()
            run.finish()
        last = self.train_to(100, "--training.steps", max(self.steps_in(), default=0) + 2)
        self.assertIn("training completed", last.stderr)
        self.assertLess(time.monotonic() - begin, HANG)

    @thorough
    def test_two_starts_in_a_new_folder_do_not_both_train(self):
        both = [subprocess.Popen([str(word) for word in (TITAN, *self.command("--training.steps", 60))], cwd=ROOT, env=bare_environment(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        ends = [(process.communicate(timeout=HANG)[1], process.returncode) for process in both]
        self.assertEqual(sorted(code for _, code in ends), [0, 2], ends)


if __name__ == "__main__":
    main()
