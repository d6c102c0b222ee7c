"""titan launch --in-process: after a failure the processes that are left build the run anew; a spare or a new process takes the place of
each lost rank. Losses and weights equal those of an undisturbed run bitwise."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from branches_test import BranchesCase
from checkpoint_test import compared, tokens
from failing_rank_test import FAULTS
from harness import HANG, ROOT, TITAN, main, thorough
from ranks_test import bare_environment
from replica_groups import DRILL
from restarts_test import SAME_FAILURE, fault

KILL, STOP, ERROR = int(signal.SIGKILL), int(signal.SIGSTOP), 0
SHARED = pathlib.Path("/dev/shm")


def failing(kind, step):
    """The fault of restarts_test, in a job that also has the watcher test/drill."""
    return [f"{DRILL},{word}" if word == FAULTS else word for word in fault(kind, step)]


def is_alive(pid):
    return pathlib.Path(f"/proc/{pid}").exists()


class InProcessCase(BranchesCase):
    RANKS = 2

    def setUp(self):
        super().setUp()
        self.recipe = [*self.recipe, "--training.steps", "12", "--checkpoint.interval", "3", "--model.dim", "64", "--model.n_layers", "2",
                       "--model.n_heads", "4", "--model.n_kv_heads", "2", "--training.local_batch_size", "1", "--training.global_batch_size",
                       str(self.RANKS), "--plugins.paths", DRILL, "--job.watchers", "test/drill", "--comm.train_timeout_seconds", "60"]
        self.in_shared_memory = set(SHARED.iterdir())

    def launched(self, *more, spares=0, restarts=5, grace=60, ranks=None):
        return [TITAN, "launch", "--nproc", ranks or self.RANKS, "--max-restarts", restarts, "--in-process", "--spares", spares, "--grace", grace,
                "--log-dir", self.logs, "--", *self.command(*more)]

    def strike(self, rank, stage="forward", signal=KILL, *, step=5, delay=0):
        """An order for the watcher test/drill; a step later than `step` is not struck again, because the order is used up."""
        self.out.mkdir(exist_ok=True)
        (self.out / f"strike.{rank}").write_text(f"{stage} {signal} {delay} {step}")

    def disturbed(self, *more, code=0, **options):
        run = self.run_command(self.launched(*more, **options), code)
        self.assert_clean()
        return run

    def begun(self, *more, **options):
        """The job in the background; `self.said` collects its standard error."""
        errors = open(self.folder / "errors.txt", "w")
        self.addCleanup(errors.close)
        process = subprocess.Popen([str(word) for word in self.launched(*more, **options)], cwd=ROOT, env=bare_environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        self.processes.append(process)
        return process

    def said(self):
        return (self.folder / "errors.txt").read_text()

    def wait_for(self, process, pattern, count=1):
        """The last of `count` matches in what the launcher said."""
        limit = time.monotonic() + HANG
        while time.monotonic() < limit:
            found = list(re.finditer(pattern, self.said()))
            if len(found) >= count:
                return found[count - 1]
            self.assertIsNone(process.poll(), self.said())
            time.sleep(0.005)
        self.fail(f"never said {pattern!r}: {self.said()}")

    def ended(self, process, code=0):
        self.assertEqual(process.wait(HANG), code, self.said())
        self.assert_clean()

    def assert_clean(self):
        self.assert_all_are_gone()
        self.assertEqual([path for path in self.out.rglob("*") if path.suffix == ".tmp"], [])
        self.assertEqual(set(SHARED.iterdir()) - self.in_shared_memory, set())

    def events(self, rank, what):
        lines = (self.out / f"drill.{rank}.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["what"] == what]

    def pids(self, rank):
        """The process of the rank in each round."""
        return [event["pid"] for event in self.events(rank, "start")]

    def weights(self, rank, out):
        """The hash of the weights after each step; a repeated step has the same one."""
        hashes = {}
        for line in (out / f"drill.{rank}.jsonl").read_text().splitlines():
            event = json.loads(line)
            if event["what"] == "commit":
                self.assertEqual(hashes.setdefault(event["step"], event["detail"]), event["detail"], event)
        return hashes

    def assert_like_undisturbed(self, *more, ranks=None, missing=()):
        straight = self.folder / "straight"
        if not straight.exists():
            ranks = ranks or self.RANKS
            self.run_command([TITAN, "launch", "--nproc", ranks, "--", *self.command(*more, out=straight)])
        for values in (compared, tokens):
            ours, theirs = values(self.out), values(straight)
            self.assertEqual(ours, {step: theirs[step] for step in theirs if step in ours or step not in missing})
        for rank in range(self.RANKS):
            self.assertEqual(self.weights(rank, self.out), self.weights(rank, straight))

    def assert_replaced(self, *lost, rounds=2):
        """Only the ranks `lost` have another process in the last round than in the first."""
        for rank in range(self.RANKS):
            pids = self.pids(rank)
            self.assertEqual(len(pids), rounds, (rank, pids))
            self.assertEqual(len(set(pids)) > 1, rank in lost, (rank, pids))


class InProcessTest(InProcessCase):
    def test_a_killed_rank_is_replaced_and_the_other_stays(self):
        self.strike(1)
        run = self.disturbed()
        self.assertEqual(self.resumed_steps(run.stderr), [3])
        first, second = self.pids(1)
        self.assert_replaced(1)
        self.assert_holds(run.stderr, f"error: rank 1 (pid {first}) was ended by signal 9 (SIGKILL)", "rank 1 failed first",
                          "restart 1 of 5: in process", f"a new process takes the place of rank 1 (pid {second})",
                          f"in their processes: rank 0 (pid {self.pids(0)[0]})")
        self.assert_like_undisturbed()
        record, = map(json.loads, (self.out / "launch_failures.jsonl").read_text().splitlines())
        self.assertEqual((record["rank"], record["response"]), (1, "restart 1 of 5"))

    def test_what_cannot_restart_in_process_is_refused_by_name(self):
        def refusal(*flags, command=("train",)):
            return self.run_command([TITAN, "launch", "--nproc", 2, *flags, "--", *command], code=2).stderr

        self.assert_holds(refusal("--in-process"), "--in-process needs --max-restarts N, at least 1")
        self.assert_holds(refusal("--spares", 1), "--spares needs --in-process")
        restarts = ["--in-process", "--max-restarts", 1]
        self.assert_holds(refusal(*restarts, "--master", "127.0.0.1:29500"), "--in-process chooses a new rendezvous address for each restart")
        self.assert_holds(refusal(*restarts, command=["generate"]), "--in-process needs titan train")
        self.assert_holds(self.run_command([TITAN, "launch", "--ranks", "1:2", *restarts, "--", "train"], code=2).stderr,
                          "--in-process and --ranks exclude each other")
        self.assert_holds(refusal("--in-process", "--nnodes", 2, "--node-rank", 0, "--master", "127.0.0.1:29500"), "--in-process with 2 nodes")


@thorough
class EveryStageTest(InProcessCase):
    VALIDATES = ["--validation.enable", "--validation.dataset", "jsonl", "--validation.dataset_path", "tests/assets/corpus/validation.jsonl", "--validation.freq", "1", "--validation.steps", "4", "--validation.seq_len", "64",
                 "--validation.local_batch_size", "1"]

    def check(self, name, rank, stage, *more, spares=0, signal=KILL, delay=0, grace=60, replaced=True, step=5):
        with self.subTest(name):
            case = self.beside(name)
            case.strike(rank, stage, signal, delay=delay, step=step)
            process = case.begun(*more, spares=spares, grace=grace)
            case.ended(process)
            case.assert_replaced(*([rank] if replaced else []))
            case.assert_like_undisturbed(*more)
            return case.said()

    def test_kills_of_each_rank(self):
        for rank in range(self.RANKS):
            for stage in ("forward", "backward", "optimizer"):
                self.check(f"{stage} of rank {rank}", rank, stage)

    def test_kills_while_saving(self):
        for rank in range(self.RANKS):
            for mode in ("disabled", "async"):
                for delay in (1, 2000, 6000):
                    self.check(f"{mode} rank {rank} after {delay} us", rank, "save", "--checkpoint.async_mode", mode, delay=delay, step=6)

    def test_kills_in_validation(self):
        for rank in range(self.RANKS):
            for delay in (1, 4000):
                self.check(f"rank {rank} after {delay} us", rank, "save", *self.VALIDATES, delay=delay)

    def test_errors(self):
        for rank in range(self.RANKS):
            for stage in ("forward", "optimizer", "save"):
                said = self.check(f"{stage} of rank {rank}", rank, stage, signal=ERROR, replaced=False)
                self.assertRegex(said, rf"error: rank {rank} \(pid \d+\) failed")
                self.assert_holds(said, "error: the drill strikes", f"rank {rank} failed first")

    def test_errors_over_gloo(self):
        for rank in range(self.RANKS):
            self.check(f"gloo {rank}", rank, "forward", "--device.transport", "gloo", signal=ERROR, replaced=False)
            self.check(f"gloo kill {rank}", rank, "forward", "--device.transport", "gloo")

    def test_a_stopped_rank_is_killed_and_replaced(self):
        for rank in range(self.RANKS):
            said = self.check(f"rank {rank}", rank, "forward", "--comm.train_timeout_seconds", 3, signal=STOP, grace=2)
            self.assertRegex(said, rf"rank {rank} \(pid \d+\) did not leave the run within 2 s \(--grace\): killing it")


class ThreeRanksTest(InProcessCase):
    RANKS = 3

    @thorough
    def test_a_spare_takes_the_place_of_any_rank(self):
        for rank in range(self.RANKS):
            with self.subTest(rank=rank):
                case = self.beside(f"spare for {rank}")
                case.out.mkdir()
                process = case.begun("--training.steps", 200, "--checkpoint.interval", 20, spares=1)
                spare = int(case.wait_for(process, r"spare 0 \(pid (\d+)\) is ready").group(1))
                case.strike(rank, step=1)
                case.ended(process)
                case.assert_replaced(rank)
                self.assertEqual(case.pids(rank)[1], spare)
                self.assertRegex(case.said(), r"spare 0 \(pid \d+\) takes the place of rank " + str(rank))
                log = (case.logs / f"rank{rank}.log").read_text()
                self.assert_holds(log, "--- restart 1")
                case.assert_like_undisturbed("--training.steps", 200, "--checkpoint.interval", 20)

    @thorough
    def test_two_failures_in_one_round(self):
        self.strike(0)
        self.strike(2)
        self.disturbed()
        self.assert_replaced(0, 2)
        self.assert_like_undisturbed()

    @thorough
    def test_a_failure_while_the_ranks_build_anew(self):
        for rank in range(self.RANKS):
            for victim in ("replacement", "survivor"):
                with self.subTest(rank=rank, victim=victim):
                    case = self.beside(f"{victim} {rank}")
                    case.strike(rank)
                    process = case.begun()
                    new = int(case.wait_for(process, rf"a new process takes the place of rank {rank} \(pid (\d+)\)").group(1))
                    other = (rank + 1) % self.RANKS
                    old = int(case.wait_for(process, rf"in their processes: .*rank {other} \(pid (\d+)\)").group(1))
                    os.kill(new if victim == "replacement" else old, signal.SIGKILL)
                    case.ended(process)
                    self.assert_holds(case.said(), "restart 2 of 5: in process")
                    stays = ({0, 1, 2} - {rank} - ({other} if victim == "survivor" else set()))
                    for one in stays:
                        self.assertEqual(len(set(case.pids(one))), 1, case.said())
                    case.assert_like_undisturbed()

    @thorough
    def test_a_spare_that_dies_is_named_and_replaced(self):
        process = self.begun("--training.steps", 400, "--checkpoint.interval", 50, spares=1)
        first = int(self.wait_for(process, r"spare 0 \(pid (\d+)\) is ready").group(1))
        os.kill(first, signal.SIGKILL)
        self.wait_for(process, rf"spare 0 \(pid {first}\) was ended by signal 9 \(SIGKILL\); the ranks are not affected")
        second = int(self.wait_for(process, r"spare 1 \(pid (\d+)\) is ready").group(1))
        self.strike(1, step=1)
        self.ended(process)
        self.assertEqual(self.pids(1)[1], second)


@thorough
class LayoutsTest(InProcessCase):
    def test_tensor_and_pipeline_parallel_runs(self):
        for name, degrees in {"tp": ["--parallelism.tensor_parallel_degree", 2], "pp": ["--parallelism.pipeline_parallel_degree", 2, "--training.local_batch_size", 2]}.items():
            for rank in range(self.RANKS):
                with self.subTest(name, rank=rank):
                    case = self.beside(f"{name} {rank}")
                    case.strike(rank)
                    case.disturbed(*degrees)
                    case.assert_replaced(rank)
                    straight = self.folder / f"straight {name}"
                    if not straight.exists():
                        self.run_command([TITAN, "launch", "--nproc", 2, "--", *self.command(*degrees, out=straight)])
                    self.assertEqual(compared(case.out), compared(straight))

    def test_local_checkpoints_in_memory(self):
        with_copies = ["--checkpoint.local_folder", SHARED / self.folder.name, "--checkpoint.local_interval", 1, "--checkpoint.interval", 100]
        for rank in range(self.RANKS):
            with self.subTest(rank=rank):
                case = self.beside(f"local {rank}")
                case.strike(rank)
                process = case.begun(*with_copies)
                self.assertEqual(process.wait(HANG), 0, case.said())
                self.assertEqual(self.resumed_steps(case.said()), [4])
                # a killed rank 0 may not have written the metrics of the last step before the local checkpoint
                case.assert_like_undisturbed("--checkpoint.interval", 100, missing=[4] if rank == 0 else [])
        subprocess.run(["rm", "-r", SHARED / self.folder.name], check=True)


@thorough
class OneRankTest(InProcessCase):
    RANKS = 1

    def test_the_only_rank_restarts(self):
        self.strike(0, signal=ERROR)
        self.disturbed()
        self.assert_replaced()
        self.assert_like_undisturbed()


@thorough
class LongTest(InProcessCase):
    def test_twenty_restarts_leave_nothing_in_the_process(self):
        fails = failing("error", 4)  # in the 4th step of each round, with a save in each
        run = self.disturbed(*fails, "--training.steps", 64, "--checkpoint.interval", 3, restarts=25)
        self.assertEqual(self.resumed_steps(run.stderr), [*range(3, 64, 3)])
        for rank in range(self.RANKS):
            events = self.events(rank, "start")
            self.assertEqual((len(events), len({event["pid"] for event in events})), (22, 1))
            descriptors, threads, pages = zip(*(map(int, event["detail"].split()) for event in events))
            print(f"rank {rank}: descriptors {descriptors}, threads {threads}, MiB {[round(p / 256) for p in pages]}")
            self.assertLessEqual(max(descriptors[10:]), max(descriptors[1:5]))
            self.assertLessEqual(max(threads[10:]), max(threads[1:5]))
            self.assertLess(pages[-1], 1.05 * pages[5])
        self.assert_like_undisturbed("--training.steps", 64, "--checkpoint.interval", 3)

    def test_the_same_failure_ends_the_job(self):
        run = self.disturbed(*failing("error", 2), code=SAME_FAILURE)
        self.assertRegex(run.stderr, r"the same failure 3 times in a row without a newer checkpoint: rank 1 at step 2 failed: error: a fault "
                         r"was asked for")
        self.assertEqual(len(set(self.pids(0))), 1)

    def test_all_restarts_used(self):
        run = self.disturbed(*failing("error", 4), restarts=2, code=1)
        self.assertEqual(self.resumed_steps(run.stderr), [3, 6])
        self.assert_holds((self.out / "launch_failures.jsonl").read_text(), "ended: all 2 restarts are used")

    def test_sigterm_while_a_rank_waits_for_the_next_round(self):
        self.strike(1, signal=STOP)
        process = self.begun("--comm.train_timeout_seconds", 2, spares=1, grace=500)
        self.wait_for(process, "error: rank 0 .* failed")
        rank0, rank1 = self.pids(0)[0], self.pids(1)[0]
        process.send_signal(signal.SIGTERM)
        self.wait_for(process, "SIGTERM passed on to the ranks")
        while is_alive(rank0):
            time.sleep(0.005)
        os.kill(rank1, signal.SIGCONT)
        self.ended(process, 1)
        self.assertNotIn("restart 1", self.said())

    def test_sigterm_saves_and_ends_spares(self):
        process = self.begun("--training.steps", 100000, spares=2)
        self.wait_for(process, r"spare 1 \(pid \d+\) is ready")
        process.send_signal(signal.SIGTERM)
        self.ended(process, 75)
        self.assert_holds(self.said(), "stopped by SIGTERM after step", "which is saved")

    def test_a_killed_launcher_leaves_no_process(self):
        process = self.begun("--training.steps", 100000, spares=1)
        spare = int(self.wait_for(process, r"spare 0 \(pid (\d+)\) is ready").group(1))
        pids = [spare, self.pids(0)[0], self.pids(1)[0]]
        process.kill()
        limit = time.monotonic() + HANG
        while any(map(is_alive, pids)) and time.monotonic() < limit:
            time.sleep(0.01)
        self.assert_all_are_gone()


if __name__ == "__main__":
    main()
