"""Restarts: a failure that repeats without progress ends the job, a restarted job continues from its newest save, and a restart may
take another number of ranks."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from branches_test import SHORT, BranchesCase
from checkpoint_test import compared, tokens
from failing_rank_test import FAULTS, processes_with
from harness import HANG, ROOT, TITAN, environment, main, metrics, thorough
from launch_case import LaunchCase
from ranks_test import TORCHRUN, bare_environment

LOSS = "loss_metrics/global_avg_loss"
SAME_FAILURE = 70


def fault(kind, step, rank=1):
    return ["--plugins.paths", FAULTS, "--parallelism.further", "test/fault", f"--parallelism.test/fault.rank={rank}",
            f"--parallelism.test/fault.kind={kind}", f"--parallelism.test/fault.step={step}"]


class SameFailureTest(LaunchCase):
    """A script as the ranks."""

    def test_the_same_failure_ends_the_job_with_its_cause(self):
        run = self.launch(2, "fail", 1, flags=["--max-restarts", "10", "--same-failures", "3"])
        self.assertEqual(run.returncode, SAME_FAILURE)
        self.assert_holds(run.stderr, "restart 2 of 10", "error: the same failure 3 times in a row without a newer checkpoint: rank 1 ended "
                          "with exit code 5: error: rank 1 has no data; not restarted again (--same-failures 3)")
        self.assertNotIn("restart 3 of 10", run.stderr)
        self.assertEqual(self.log(0).count("rank 0 pid"), 3)

    def test_other_programs_are_restarted_as_often_as_asked(self):
        run = self.launch(2, "fail", 1, flags=["--max-restarts", "4"])
        self.assertEqual(run.returncode, 5)
        self.assert_holds(run.stderr, "restart 4 of 4")


@thorough
class SameFailureOfATrainingTest(BranchesCase):
    def launch(self, *arguments, code, restarts=10):
        return self.run_command([TITAN, "launch", "--nproc", 2, "--max-restarts", restarts, "--", *self.command(*arguments)], code)

    def test_an_error_names_rank_step_and_message(self):
        run = self.launch(*fault("error", 16), "--checkpoint.interval", 50, code=SAME_FAILURE)
        self.assertRegex(run.stderr, r"error: the same failure 3 times in a row without a newer checkpoint: rank 1 at step 16 ended with "
                         r"exit code 1: error: a fault was asked for")
        self.assertEqual(len(re.findall("restart . of 10", run.stderr)), 2)

    def test_a_signal_counts_too(self):
        run = self.launch(*fault("kill", 16), "--checkpoint.interval", 50, code=SAME_FAILURE)
        self.assertRegex(run.stderr, r"3 times in a row .*: rank 1 at about step 1[56] was ended by signal 9 \(SIGKILL\); not restarted")

    def test_a_newer_checkpoint_begins_the_count_anew(self):
        run = self.launch(*fault("error", 16), code=0)  # of 60 steps, each start passes one save
        self.assertEqual(self.resumed_steps(run.stderr), [10, 20, 30, 40, 50])
        self.assertNotIn("times in a row", run.stderr)


@thorough
class ContinuedTest(BranchesCase):
    """Each setting of how a job begins is applied once, however the job is started again."""

    STEPS = ["--training.steps", 50]

    def setUp(self):
        super().setUp()
        self.first = self.folder / "first"
        self.train_to(20, out=self.first)

    def settings(self, name):
        """The arguments, and the step after which the first start begins."""
        if name == "initial_load_path":
            return ["--checkpoint.initial_load_path", self.first / "checkpoint", "--checkpoint.load_step", 10,
                    "--checkpoint.no_initial_load_model_only"], 10
        shutil.copytree(self.first, self.out)
        return {"load_step": (["--checkpoint.load_step", 10], 10),
                "exclude_from_loading": (["--checkpoint.exclude_from_loading", "optimizer"], 20)}[name]

    def check(self, name, disturbed):
        """`disturbed(arguments)` runs the job to its end, disturbed, and returns its standard errors."""
        begin, first = self.settings(name)
        straight = self.folder / "straight"
        if self.out.exists():
            shutil.copytree(self.out, straight)
        err = disturbed([*begin, *self.STEPS])
        resumed = self.resumed_steps(err)
        self.assertEqual(resumed[0], first, err)
        self.assertGreater(len(resumed), 2, err)
        self.assertEqual(resumed, sorted(set(resumed)), "a restart went back")
        self.run_command([TITAN, "launch", "--nproc", 2, "--", *self.command(*begin, *self.STEPS, out=straight)])
        theirs, ours = compared(straight), compared(self.out)
        steps = range(first + 1, 51)
        self.assertEqual({step: ours[step] for step in steps}, {step: theirs[step] for step in steps})

    def launched(self, arguments):
        return self.run_command([TITAN, "launch", "--nproc", 2, "--max-restarts", 3, "--", *self.command(*arguments, *fault("kill", 16))]).stderr

    def by_torchrun(self, arguments):
        return self.run_command([TORCHRUN, "--no-python", "--standalone", "--nproc-per-node", 2, "--max-restarts", 3, TITAN,
                                 *self.command(*arguments, *fault("kill", 16))], TMPDIR=str(self.folder)).stderr

    def requeued(self, arguments):
        """Stopped by SIGTERM after a few steps and started again, until it is done."""
        errors = []
        for _ in range(20):
            command = [str(word) for word in (TITAN, "launch", "--nproc", 2, "--", *self.command(*arguments))]
            process = subprocess.Popen(command, cwd=ROOT, env=bare_environment(), text=True, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for number, line in enumerate(line for line in process.stdout if line.startswith("step:")):
                if number == 8 and len(errors) < 3:
                    process.send_signal(signal.SIGTERM)
                    break
            _, err = process.communicate(timeout=HANG)
            errors.append(err)
            if process.returncode == 0:
                return "".join(errors)
            self.assertEqual(process.returncode, 75, err)
        self.fail("the job never ended")

    def test_restarts_of_titan_launch_after_load_step(self):
        self.check("load_step", self.launched)

    def test_restarts_of_titan_launch_after_initial_load_path(self):
        self.check("initial_load_path", self.launched)

    def test_restarts_of_titan_launch_after_exclude_from_loading(self):
        self.check("exclude_from_loading", self.launched)

    def test_restarts_of_torchrun_after_initial_load_path(self):
        self.check("initial_load_path", self.by_torchrun)

    def test_restarts_of_torchrun_after_exclude_from_loading(self):
        self.check("exclude_from_loading", self.by_torchrun)

    def test_a_requeue_after_load_step(self):
        self.check("load_step", self.requeued)

    def test_a_requeue_after_initial_load_path(self):
        self.check("initial_load_path", self.requeued)

    def test_a_requeue_after_exclude_from_loading(self):
        self.check("exclude_from_loading", self.requeued)

    def test_a_first_save_that_is_cut_off_does_not_hide_the_initial_step(self):
        begin, _ = self.settings("initial_load_path")
        (self.out / "checkpoint/step-20").mkdir(parents=True)
        (self.out / "checkpoint/step-20/weights-rank-00000.safetensors.tmp").write_bytes(b"begun")
        run = self.train_to(20, *begin)
        self.assertEqual(self.resumed_steps(run.stderr), [10])
        self.assert_holds(run.stderr, "is incomplete")


class ElasticCase(BranchesCase):
    """float64, where another order of sums shows below 1e-9; the batch of 4 fits 1, 2 and 4 ranks."""

    def setUp(self):
        super().setUp()
        self.recipe = [*self.recipe, "--training.global_batch_size", "4", "--training.local_batch_size", "1", "--training.dtype", "float64",
                       "--debug.deterministic", "--training.steps", "50", "--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4",
                       "--model.n_kv_heads", "2", "--comm.train_timeout_seconds", "60"]

    def assert_like_undisturbed(self):
        straight = self.folder / "straight"
        self.run_command([TITAN, *self.command(out=straight)])
        ours, theirs = metrics(self.out), metrics(straight)
        self.assertEqual([line["step"] for line in ours], [line["step"] for line in theirs])
        for line, other in zip(ours, theirs):
            self.assertLess(abs(line[LOSS] / other[LOSS] - 1), 1e-9, line["step"])
            self.assertEqual(line["n_tokens_seen"], other["n_tokens_seen"])
        self.assertEqual(tokens(self.out), tokens(straight))

    def worlds(self):
        """The number of ranks of each session."""
        events = [json.loads(line) for line in (self.out / "history.jsonl").read_text().splitlines()]
        return [event["world_size"] for event in events if event["event"] == "start"]


class ElasticLaunchTest(ElasticCase):
    def launch(self, *arguments, flags=("--ranks", "1:2"), code=0):
        return self.run_command([TITAN, "launch", *flags, "--max-restarts", 5, "--", *self.command(*arguments)], code)

    @thorough
    def test_fewer_ranks_and_later_more_give_the_same_losses(self):
        counts = self.write("counts", "2\n1\n2\n")  # one line for each start; the last stays
        flags = ["--ranks", "1:2", "--available", f"head -n 1 {counts} && if [ $(wc -l < {counts}) -gt 1 ]; then sed -i 1d {counts}; fi"]
        # in the 32nd microbatch of rank 0: step 16 of each start with two ranks, step 8 with one
        run = self.launch(*fault("kill", 32, rank=0), flags=flags)
        self.assert_holds(run.stderr, "now 1 rank instead of 2", "now 2 ranks instead of 1")
        self.assertEqual(self.worlds()[:3], [2, 1, 2])
        self.assert_like_undisturbed()

    @thorough
    def test_a_rank_that_fails_twice_without_progress_is_left_out(self):
        run = self.launch(*fault("kill", 8, rank=1))  # in its 4th step
        self.assert_holds(run.stderr, "restart 2 of 5", "now 1 rank instead of 2")
        self.assertNotIn("restart 3 of 5", run.stderr)
        self.assert_like_undisturbed()

    @thorough
    def test_a_layout_that_allows_no_fewer_ranks_is_named_and_kept(self):
        run = self.launch(*fault("kill", 8, rank=1), "--parallelism.data_parallel_shard_degree", 2, code=SAME_FAILURE)
        self.assert_holds(run.stderr, "no smaller number of ranks fits this job, so no rank is left out; for 1 rank: command line: error: the "
                          "parallel degrees do not make the world size: shard 2", "the same failure 3 times in a row")

    def test_what_no_layout_allows_is_refused_by_name(self):
        run = self.launch("--parallelism.tensor_parallel_degree", 4, flags=["--ranks", "2:3"], code=2)
        self.assert_holds(run.stderr, "no number of ranks from 2 to 3 fits this job; for 3 ranks:", "tensor_parallel_degree 4", "start 4 ranks")
        run = self.launch("--training.global_batch_size", -1, code=2)
        self.assert_holds(run.stderr, "--ranks needs training.global_batch_size")

    def test_a_start_takes_the_largest_number_that_the_layout_allows(self):
        run = self.launch("--parallelism.tensor_parallel_degree", 2, "--training.steps", 1, flags=["--ranks", "1:3"])
        self.assert_holds(run.stderr, "--ranks 1:3: starting 2 ranks, the most that the layout allows")


@thorough
class ElasticTorchrunTest(ElasticCase):
    """Two agents of one rank each stand for two hosts."""

    def agent(self, port, *, is_host=False):
        command = [TORCHRUN, "--no-python", "--nnodes", "1:2", "--nproc-per-node", "1", "--max-restarts", "5", "--rdzv-backend", "c10d",
                   "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job", "--local-addr", "127.0.0.1", "--rdzv-conf",
                   f"is_host={int(is_host)},last_call_timeout=2", TITAN, *self.command()]
        self.num_agents = getattr(self, "num_agents", 0) + 1
        log = open(self.folder / f"agent{self.num_agents}.log", "w")
        self.addCleanup(log.close)
        # with the shared store of torch 2.15 a host that joins waits for an address that the others do not publish again
        environment = bare_environment(TMPDIR=str(self.folder), TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
        process = subprocess.Popen([str(word) for word in command], cwd=ROOT, env=environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self.addCleanup(self.kill_host, process)
        return process

    def ranks_of(self, process):
        with contextlib.suppress(FileNotFoundError):
            return [int(pid) for pid in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        return []

    def kill_host(self, process):
        """SIGKILL to an agent and to its ranks, as when a host is lost."""
        for pid in [process.pid, *self.ranks_of(process)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def wait_for_step(self, step, world):
        limit = time.monotonic() + HANG
        while time.monotonic() < limit:
            with contextlib.suppress(FileNotFoundError, IndexError, json.JSONDecodeError, AssertionError):
                if self.worlds()[-1] == world and metrics(self.out)[-1]["step"] >= step:
                    return metrics(self.out)[-1]["step"]
            time.sleep(0.05)
        self.fail("".join(path.read_text()[-5000:] for path in sorted(self.folder.glob("agent*.log"))))

    def test_a_lost_host_and_one_that_joins_give_the_same_losses(self):
        self.recipe = [*self.recipe, "--training.steps", "200", "--checkpoint.interval", "20", "--checkpoint.keep_latest_k", "2"]
        port = self.free_port()
        first = self.agent(port, is_host=True)
        second = self.agent(port)
        self.wait_for_step(25, 2)
        self.kill_host(second)
        step = self.wait_for_step(45, 1)
        for pid in self.ranks_of(first):
            os.kill(pid, signal.SIGSTOP)  # it must not end before the other host joins; torchrun kills it then
        self.agent(port)
        self.wait_for_step(step, 2)
        self.assertEqual(first.wait(HANG), 0, (self.folder / "agent1.log").read_text()[-5000:])
        self.assertEqual(self.worlds(), [2, 1, 2])
        self.assert_like_undisturbed()


if __name__ == "__main__":
    main()
