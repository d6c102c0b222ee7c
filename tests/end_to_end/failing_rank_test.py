"""One of several ranks fails: the others end soon, with an error that names it, and no process is left."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from harness import HANG, ROOT, TINY, TITAN, Case, environment, main, thorough

FAULTS = pathlib.Path(os.environ["TITAN_WORK"]).parent / "bad_plugins" / "fault"
TIMEOUT = 10  # timeout of collectives in the tests of hangs, in seconds: far above a step on a slow machine
NEVER = 100_000
REPEATS = int(os.environ.get("TITAN_DRILLS", "3"))  # 30 in tools/long_checks.sh


def processes_with(text):
    """Ids of running processes that have `text` in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            pass
    return [pid for pid in found if int(pid) != os.getpid()]


class Ranks(Case):
    def start(self, *arguments, ranks=2, per_rank=lambda rank: [], program=lambda rank: TITAN, timeout=TIMEOUT):
        """Starts every rank without a launcher, so that no launcher ends the others. `timeout`: seconds that collectives
        wait; with NEVER ranks end only because another rank reports the failure."""
        port = self.free_port()
        self.runs = []
        for rank in range(ranks):
            flags = ["train", *TINY, "--job.dump_folder", str(self.out), "--comm.train_timeout_seconds", str(timeout),
                     "--comm.init_timeout_seconds", str(HANG), *arguments, *per_rank(rank)]
            self.runs.append(subprocess.Popen(
                [program(rank), *flags], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, errors="replace",
                env=environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                                LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))))
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for run in self.runs:
            if run.poll() is None:
                run.kill()
            run.communicate()

    def wait_for_the_first_step(self):
        """How long a start takes says nothing about how soon a run ends."""
        log, deadline = self.out / "metrics.jsonl", time.monotonic() + HANG
        while not (log.exists() and log.stat().st_size) and any(run.poll() is None for run in self.runs):
            self.assertLess(time.monotonic(), deadline, f"no step within {HANG} s")
            time.sleep(0.05)

    def ends(self, within):
        """Exit codes and standard errors, in order of rank; fails when a rank is not gone `within` seconds."""
        deadline = time.monotonic() + within
        results = []
        for rank, run in enumerate(self.runs):
            try:
                _, err = run.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.fail(f"rank {rank} is still there after {within} s")
            results.append((run.returncode, err))
        return results


class FaultTest(Ranks):
    """Repeated with different faulty ranks: sometimes rank 0, which hosts the store, sometimes another."""

    def setUp(self):
        super().setUp()
        self.num_late = 0

    def fail_often(self, kind, repeats=REPEATS):
        for i in range(repeats):
            self.fail_once(kind, i % 3)
        self.assertLessEqual(self.num_late, repeats // 2, "hardly any rank learns which rank failed")

    def fail_once(self, kind, faulty):
        shutil.rmtree(self.out, ignore_errors=True)
        self.start("--training.steps", "1000000", "--plugins.paths", str(FAULTS), "--parallelism.further", "test/fault",
                   "--training.global_batch_size", "6", "--training.local_batch_size", "2", ranks=3, per_rank=lambda rank: [
                       f"--parallelism.test/fault.rank={faulty}", f"--parallelism.test/fault.kind={kind}",
                       "--parallelism.test/fault.step=3"], timeout=TIMEOUT if kind == "hang" else NEVER)
        self.wait_for_the_first_step()
        results = self.ends(within=HANG)
        for rank, (code, err) in enumerate(results):
            with self.subTest(kind=kind, faulty=faulty, rank=rank):
                self.assertNotEqual(code, 0, err)
                if rank == faulty and kind == "kill":
                    continue
                self.assertIn("error:", err)
                if rank != faulty:
                    # on a busy machine rank 0, which names the faulty rank, and its store may be gone before this
                    # rank could ask
                    is_late = 0 not in (rank, faulty) and "the store is gone: rank 0" in err
                    self.num_late += is_late
                    self.assertRegex(err, "the store is gone" if is_late else rf"rank {faulty}\b", err)
                    self.assertRegex(err, r"(all_gather|all_reduce|reduce_scatter|barrier) number \d+ of group '\w+'", err)
        self.assertEqual(processes_with(str(self.out)), [])

    def test_a_rank_that_is_killed(self):
        self.fail_often("kill")

    def test_a_rank_that_raises_an_error(self):
        self.fail_often("error")

    def test_a_rank_that_hangs(self):
        self.fail_often("hang", max(2, REPEATS // 2))


class FrozenTest(Ranks):
    """A stopped process keeps its connections open and does not respond."""

    LIMIT = 4  # timeout of collectives, in seconds

    def test_a_stopped_rank_0_does_not_hold_the_others(self):
        """It hosts the store, and LibTorch's client waits for responses of the store without a time limit."""
        self.start("--training.steps", "1000000", timeout=self.LIMIT)
        self.wait_for_the_first_step()
        time.sleep(1)  # until the second step has a time limit
        self.runs[0].send_signal(signal.SIGSTOP)
        _, err = self.runs[1].communicate(timeout=HANG)
        self.assertEqual(self.runs[1].returncode, 1, err)
        self.assert_holds(err, "the store is gone: rank 0 or the launcher that hosts it has ended or is stopped (the store gave no answer "
                          "for 5 s")
        self.assertRegex(err, r"all_reduce number \d+ of group|all_gather number \d+ of group|reduce_scatter number \d+ of group")

    @thorough
    def test_titan_launch_ends_a_stopped_rank_0(self):
        run = subprocess.Popen([TITAN, "launch", "--nproc", "2", "--log-dir", str(self.folder / "logs"), "--", "train", *TINY,
                                "--job.dump_folder", str(self.out), "--training.steps", "1000000",
                                "--comm.train_timeout_seconds", str(self.LIMIT)], cwd=ROOT, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        self.runs = [run]
        self.addCleanup(self.kill_all)
        self.wait_for_the_first_step()
        time.sleep(1)
        rank_0, = [pid for pid in processes_with(str(self.out))
                   if b"\0RANK=0\0" in b"\0" + pathlib.Path(f"/proc/{pid}/environ").read_bytes()]
        os.kill(int(rank_0), signal.SIGSTOP)
        begin = time.monotonic()
        _, err = run.communicate(timeout=HANG)
        self.assertNotEqual(run.returncode, 0)
        self.assertLess(time.monotonic() - begin, 60, err)
        self.assertEqual(processes_with(str(self.out)), [])


class StartTest(Ranks):
    """Faults before the first step: a clear error on every rank, no hang."""

    def refused(self, *texts, within=HANG, codes=(2, 2)):
        results = self.ends(within)
        self.assertEqual(tuple(code for code, _ in results), codes, results)
        for _, err in results:
            for text in texts:
                self.assertIn(text, err)
        self.assertEqual(processes_with(str(self.out)), [])

    def test_a_configuration_that_differs(self):
        self.start(per_rank=lambda rank: [f"--optimizer.lr={1 + rank}e-3"])
        self.refused("the ranks of this run do not agree", "rank 1: optimizer.lr = 0.002, on rank 0: 0.001")

    def test_a_plugin_that_differs(self):
        program = self.folder / "other" / "bin" / "titan"
        plugins = self.folder / "other" / "lib" / "titan" / "plugins"
        program.parent.mkdir(parents=True)
        for name in ("titan", "titan-train"):
            shutil.copy(pathlib.Path(TITAN).parent / name, program.parent / name)
        shutil.copytree(pathlib.Path(TITAN).parent.parent / "lib" / "titan" / "plugins", plugins)
        with (plugins / "adamw.plugin.so").open("ab") as file:
            file.write(b"another build")
        self.start(program=lambda rank: str(program) if rank == 1 else TITAN)
        self.refused("the ranks of this run do not agree", "rank 1: plugin of optimizer 'AdamW' = adamw ",
                     ", on rank 0: adamw ")

    def test_degrees_that_do_not_make_the_world_size(self):
        self.start("--parallelism.tensor_parallel_degree", "3")
        self.refused("the parallel degrees do not make the world size", "but the world size is 2")

    def test_heads_that_do_not_divide(self):
        self.start("--parallelism.tensor_parallel_degree", "2", "--model.n_heads", "5", "--model.n_kv_heads", "5",
                   "--model.dim", "60")
        self.refused("5", "tensor_parallel_degree")

    def test_a_rank_out_of_range(self):
        self.start()
        self.kill_all()
        run = subprocess.run([TITAN, "train", *TINY], cwd=ROOT, capture_output=True, text=True, timeout=HANG,
                             env=environment(RANK="5", LOCAL_RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                                             MASTER_PORT=str(self.free_port())))
        self.assertEqual(run.returncode, 2)
        self.assertIn("RANK", run.stderr)
        self.assertIn("5", run.stderr)

    def one_rank(self, rank, port, host="127.0.0.1", timeout=3):
        return subprocess.run(
            [TITAN, "train", *TINY, "--job.dump_folder", str(self.out), "--comm.init_timeout_seconds", str(timeout)],
            cwd=ROOT, capture_output=True, text=True, timeout=HANG,
            env=environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR=host,
                            MASTER_PORT=str(port)))

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            run = self.one_rank(0, taken.getsockname()[1])
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("rank 0 cannot host the store at 127.0.0.1:", run.stderr)
        self.assertIn("Choose another master port", run.stderr)

    def test_a_master_that_is_not_there(self):
        run = self.one_rank(1, self.free_port())
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertRegex(run.stderr, r"^error: rank 1 does not reach the store at 127.0.0.1:\d+ within 3 s: [^\n]+[^.\n]; is rank 0 running there\?\n$")

    def test_a_rank_that_never_comes(self):
        run = self.one_rank(0, self.free_port())
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("these ranks of 2 did not reach the store within 3 s: 1", run.stderr)


if __name__ == "__main__":
    main()
