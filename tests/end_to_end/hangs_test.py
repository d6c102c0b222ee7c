"""Watcher 'hangs': limits that a run learns end it when a rank hangs, with an error that names the rank; a restart finishes the job. A
plugin of tests/bad_plugins holds a rank."""

import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

from failing_rank_test import processes_with
from harness import HANG, ROOT, TINY, TITAN, Case, environment, losses, main, thorough

PLUGINS = pathlib.Path(os.environ["TITAN_PROGRAM"]).parent.parent / "tests/bad_plugins"
STEPS = 14
SMALL = [*TINY, "--model.dim", "32", "--model.n_layers", "2", "--model.n_heads", "2", "--training.local_batch_size", "2",
         "--training.global_batch_size", "4", "--training.steps", STEPS, "--lr_scheduler.warmup_steps", "2", "--metrics.log_freq", "1",
         "--metrics.no_enable_tensorboard", "--checkpoint.enable", "--checkpoint.interval", "2", "--checkpoint.keep_latest_k", "3",
         "--debug.deterministic", "--comm.train_timeout_seconds", "500", "--plugins.paths", f"{PLUGINS}/stall,{PLUGINS}/hanging_dataset"]
# limits are known from the end of step 3 on; a step takes a thousandth of the floor
QUICK = ["--watcher.hangs.floor_seconds", "10", "--watcher.hangs.look_every_seconds", "0.1", "--watcher.hangs.first_steps", "2",
         "--watcher.hangs.update_every", "2"]
DATA = ["--training.dataset", "bad/hanging", "--training.dataset_path", "None", "--training.steps", "24"]


def stall(phase, *, step=11, rank=1, kind="hang", **more):
    flags = {"phase": phase, "step": step, "rank": rank, "kind": kind, **more}
    return ["--job.watchers", "hangs,test/stall", *(f"--watcher.test/stall.{name}={value}" for name, value in flags.items())]


class HangsCase(Case):
    def start(self, *arguments, ranks=2, restarts=0, code=0, out=None, limits=QUICK, how=()):
        launch = ["launch", "--nproc", ranks, "--max-restarts", restarts, *how, "--"] if ranks > 1 else []
        run = subprocess.run([str(word) for word in (TITAN, *launch, "train", *SMALL, *limits, "--job.dump_folder", out or self.out,
                                                     *arguments)],
                             cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        self.assertEqual(processes_with(str(out or self.out)), [])
        return run

    def failures(self):
        return [json.loads(line) for line in (self.out / "launch_failures.jsonl").read_text().splitlines()]

    def undisturbed(self, *arguments):
        """Without the watcher."""
        other = self.folder / "undisturbed"
        self.start(*arguments, out=other, limits=[])
        return losses(other)

    def check(self, phase, *arguments, undisturbed=(), error):
        """One rank hangs once; the restarted job ends as if nothing had happened."""
        run = self.start(*arguments, restarts=1)
        failure, = self.failures()
        self.assertRegex(failure["error"].splitlines()[0], error)
        self.assertRegex(run.stderr, rf"rank {failure['rank']} .*ended with exit code 1")
        self.assertEqual(losses(self.out), self.undisturbed(*undisturbed))
        self.assertTrue((self.out / f"comm_traces/rank_{failure['rank']}").exists(), "no flight record")
        return failure


class HangTest(HangsCase):
    def test_a_rank_that_hangs_in_the_forward_is_named_and_the_restarted_job_ends_with_the_same_losses(self):
        failure = self.check("forward", *stall("forward"), error=r"^error: hang: rank 1 \(host \S+\) hangs in training step 11: section "
                             r"'forward' has taken \d+\.\d\d s, limit 10\.00 s \(5\.?0? x longest time seen \d\.\d\d s, at least watcher\.hangs\."
                             r"floor_seconds\)$")
        self.assertEqual((failure["rank"], failure["step"]), (1, 11))
        report = subprocess.run([TITAN, "report", self.out, "--output", self.folder / "report.html"], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=HANG)
        self.assertRegex(report.stdout, r"(?m)^  1 failure: 1 hang$")


@thorough
class PhasesTest(HangsCase):
    def test_data(self):
        mark = self.folder / "mark"
        error = r"^error: hang: rank \d \(host \S+\) hangs in training step \d+: section 'data' has taken"
        self.check("data", *DATA, "--job.watchers", "hangs", "--dataset.bad/hanging.mark", mark, error=error,
                   undisturbed=[*DATA, "--dataset.bad/hanging.mark", mark])

    def test_optimizer(self):
        self.check("optimizer", *stall("optimizer", rank=0), error=r"^error: hang: rank 0 \(host \S+\) hangs in training step 11: section 'optimizer' ")

    def test_validation(self):
        self.check("validation", *stall("validation", step=10), error=r"^error: hang: rank 1 \(host \S+\) hangs in training step 10: section 'validation' ")

    def test_checkpoint(self):
        self.check("checkpoint", *stall("checkpoint", step=10, rank=0), error=r"^error: hang: rank [01] \(host \S+\) hangs, or waits in it for "
                   r"rank [01] \(host \S+\) in training step 10: section 'checkpoint' ")


@thorough
class InProcessTest(HangsCase):
    def test_the_rank_that_hangs_is_replaced(self):
        run = self.start(*stall("forward"), restarts=1, how=["--in-process"])
        self.assertRegex(self.failures()[0]["error"].splitlines()[0], r"hang: rank 1 \(host \S+\) hangs in training step 11: section 'forward' ")
        self.assert_holds(run.stderr, "restart 1 of 1: in process", "a new process takes the place of rank 1", "in their processes: rank 0")
        self.assertEqual(losses(self.out), self.undisturbed())


@thorough
class StoppedTest(HangsCase):
    """A stopped process cannot report itself."""

    def check_stopped(self, rank):
        other = 1 - rank
        self.check("forward", *stall("forward", kind="stop", rank=rank), error=rf"^error: hang: rank {other} \(host \S+\) waits for rank {rank} "
                   r"\(host \S+\) in training step 11: \w+ number \d+ of group '\w+' has taken \d+\.\d\d s, limit \d+\.\d\d s$")

    def test_rank_1(self):
        self.check_stopped(1)

    def test_rank_0_which_hosts_the_store(self):
        self.check_stopped(0)


@thorough
class LearnedTest(HangsCase):
    def test_the_first_steps_of_a_job_have_no_limit(self):
        self.start(*stall("forward", step=2, kind="slow", slow_milliseconds=15000), "--training.steps", "4")

    def test_a_step_that_is_twice_as_slow_is_no_hang(self):
        """The longest forward is 4 s and the floor 6 s, so only the factor protects a step of 8 s."""
        self.start(*stall("forward", step=5, kind="slow", milliseconds=4000, slow_milliseconds=8000), "--watcher.hangs.floor_seconds", "6",
                   "--training.steps", "6")

    def test_a_resumed_run_has_the_limits_in_its_first_steps_on_any_number_of_ranks(self):
        self.start("--job.watchers", "hangs", "--checkpoint.no_last_save_model_only", "--training.steps", "8")
        for ranks in (2, 1):
            with self.subTest(ranks=ranks):
                run = self.start(*stall("forward", step=9, rank=0, always=True), ranks=ranks, code=1)
                self.assertRegex(run.stderr, r"error: hang: rank 0 \(host \S+\) hangs in training step 9: section 'forward' has taken")

    def test_a_process_that_was_stopped_and_continues_does_not_blame_itself(self):
        words = [str(word) for word in (TITAN, "train", *SMALL, *QUICK, "--job.dump_folder", self.out, "--training.steps", "100000",
                                        "--checkpoint.no_enable", "--job.watchers", "hangs")]
        run = subprocess.Popen(words, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        self.wait_for_step(run, 10)
        run.send_signal(signal.SIGSTOP)
        subprocess.run(["sleep", "15"], check=True)  # longer than the limit, which is what is tested
        run.send_signal(signal.SIGCONT)
        self.wait_for_step(run, 30)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=HANG)
        self.assertNotIn("hang:", err)

    def test_a_process_under_a_debugger_is_left_alone_until_it_is_detached(self):
        words = [str(word) for word in (TITAN, "train", *SMALL, *QUICK, "--job.dump_folder", self.out, *stall("forward", rank=0))]
        run = subprocess.Popen(words, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        self.wait_for_step(run, 10)
        attached, done = threading.Event(), threading.Event()

        def debug():  # a tracer that ends detaches
            libc = ctypes.CDLL(None, use_errno=True)
            self.assertEqual(libc.ptrace(0x4206, run.pid, None, None), 0, os.strerror(ctypes.get_errno()))  # PTRACE_SEIZE
            attached.set()
            done.wait()

        tracer = threading.Thread(target=debug)
        tracer.start()
        self.addCleanup(done.set)
        self.assertTrue(attached.wait(HANG))
        subprocess.run(["sleep", "15"], check=True)  # longer than the limit, which is what is tested
        self.assertIsNone(run.poll())
        done.set()
        tracer.join()
        _, err = run.communicate(timeout=HANG)
        self.assertEqual(run.returncode, 1, err)
        self.assertRegex(err, r"error: hang: rank 0 \(host \S+\) hangs in training step 11: section '(forward|step)' has taken")

    def wait_for_step(self, run, number):
        for line in run.stdout:
            found = re.match(r"step: +(\d+)", line)
            if found and int(found[1]) >= number:
                return
        self.fail(run.stderr.read())

    def test_a_profiled_step_has_no_limit(self):
        slow = stall("forward", step=8, kind="slow", slow_milliseconds=15000)
        profiled = ["--profiling.enable_profiling", "--profiling.profile_freq", "8", "--profiling.profiler_warmup", "1",
                    "--profiling.profiler_active", "1", "--training.steps", "8"]
        self.start(*slow, *profiled)
        run = self.start(*slow, "--training.steps", "9", out=self.folder / "other", code=1)
        self.assertIn("section 'forward' has taken", run.stderr)


class RefusedTest(HangsCase):
    def test_replica_groups_are_refused(self):
        run = self.start("--job.watchers", "hangs", "--fault_tolerance.enable", ranks=1, code=2)
        self.assert_holds(run.stderr, "watcher 'hangs' ends a rank that waits for long, but replica groups wait for groups that join")


if __name__ == "__main__":
    main()
