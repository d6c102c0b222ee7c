"""Runs of two ranks, with each way to start them: they train like one rank with the same global batch, write its files
once and stop together. A simulated rank of 512 reports its memory and traffic."""

import contextlib
import functools
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from failing_rank_test import FAULTS, processes_with
from harness import DEBUG_CONFIG, HANG, ROOT, TINY, TITAN, Case, environment, main, metrics, thorough, titan

LOSS, NORM = "loss_metrics/global_avg_loss", "grad_norm"
RECIPE = [*TINY, "--training.global_batch_size", "4", "--debug.fingerprints"]
ENDLESS = ["--training.steps", "1000000"]
TORCHRUN = pathlib.Path(sys.executable).parent / "torchrun"
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "GROUP_", "LOG_RANK", "NGPU", "TORCHELASTIC_", "SLURM_", "OMPI_", "PMI",
             "MPI_LOCAL", "MV2_", "PALS_")


def bare_environment(**changes):
    """The environment without variables of a launcher that may have started this test."""
    env = {name: value for name, value in environment().items() if not name.startswith(LAUNCHERS)}
    return {**env, **changes}


def fingerprints(folder):
    return (folder / "fingerprints.jsonl").read_text()


@functools.cache
def one_rank():
    """Metrics and fingerprints of the job on one rank."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        subprocess.run([TITAN, "train", *RECIPE, "--job.dump_folder", folder], cwd=ROOT, env=bare_environment(), check=True,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG)
        return metrics(folder), fingerprints(pathlib.Path(folder))


class RanksCase(Case):
    def setUp(self):
        super().setUp()
        self.processes = []
        self.recipe = RECIPE
        self.logs = self.folder / "logs"
        self.addCleanup(self.leave_nothing_behind)

    def leave_nothing_behind(self):
        """A failed test may leave ranks without a launcher; a test that passes leaves none."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for pid in processes_with(str(self.folder)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def assert_all_are_gone(self):
        self.assertEqual(processes_with(str(self.folder)), [])

    def arguments(self, *more):
        return ["train", *self.recipe, "--job.dump_folder", str(self.out), *more]

    def start(self, command, **env):
        process = subprocess.Popen(list(map(str, command)), cwd=ROOT, env=bare_environment(**env), text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.processes.append(process)
        return process

    def start_ranks(self, *more, flags=lambda rank: [], variables=lambda rank: {}):
        """Two ranks without a launcher."""
        return [self.start([TITAN, *self.arguments(*more, *flags(rank))], **variables(rank)) for rank in range(2)]

    def finish(self, processes, code=0, within=HANG):
        """Standard output and error of each; fails unless all exit with `code` in time and leave no process."""
        deadline = time.monotonic() + within
        results = [process.communicate(timeout=max(0.1, deadline - time.monotonic())) for process in processes]
        codes = [process.returncode for process in processes]
        self.assertEqual(codes, [code] * len(codes), "".join(f"\n--- stdout\n{out}\n--- stderr\n{err}" for out, err in results))
        self.assert_all_are_gone()
        return results

    def launch_command(self, *more):
        return [TITAN, "launch", "--nproc", "2", "--log-dir", self.logs, "--", *self.arguments(*more)]

    def launch(self, *more, code=0, **env):
        return self.finish([self.start(self.launch_command(*more), **env)], code)[0]

    def log(self, rank):
        return (self.logs / f"rank{rank}.log").read_text()

    def wait_for_a_step(self, process):
        for line in process.stdout:
            if "loss" in line:
                return
        self.fail(f"the run ended before its first step: {process.stderr.read()}")

    def assert_same_steps(self, lines):
        expected = one_rank()[0]
        self.assertEqual([line["step"] for line in lines], [1, 2, 3])
        for line, alone in zip(lines, expected):
            self.assertAlmostEqual(line[LOSS] / alone[LOSS], 1, delta=1e-5)
            # AdamW makes the losses independent of the gradients' size; only the norm shows it
            self.assertAlmostEqual(line[NORM] / alone[NORM], 1, delta=1e-5)
            self.assertEqual(line["n_tokens_seen"], alone["n_tokens_seen"])

    def assert_trained_like_one_rank(self, err):
        """Initial weights and tokens are bitwise equal, losses up to rounding, and one rank writes each file."""
        self.assert_holds(err, "rank 0 of 2, local rank 0 of 2", "training completed after step 3")
        self.assertEqual(fingerprints(self.out), one_rank()[1])
        self.assert_same_steps(metrics(self.out))
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         ["config.toml", "fingerprints.jsonl", "history.jsonl", "metrics.jsonl", "run.lock", "status", "tb", "timeline"])
        self.assertEqual(len(list(self.out.rglob("events.out.tfevents.*.0"))), 1)
        self.assert_nothing_is_half_written()

    def assert_stopped_together(self, *errors):
        """All ranks report the same last step, which is the last logged one."""
        text = "".join(errors)
        steps = re.findall(r"\[rank(\d)\].*stopped by SIGTERM after step (\d+)", text)
        self.assertEqual(sorted(rank for rank, _ in steps), ["0", "1"], text)
        self.assertEqual({int(step) for _, step in steps}, {metrics(self.out)[-1]["step"]})
        self.assertNotIn("error:", text)
        self.assert_nothing_is_half_written()


class LaunchTest(RanksCase):
    """`titan launch`."""

    def test_two_ranks_train_what_one_trains(self):
        out, err = self.launch()
        self.assert_trained_like_one_rank(err)
        self.assert_holds(err, "by titan launch (RANK, WORLD_SIZE, LOCAL_RANK); store at 127.0.0.1:", "hosted by rank 0")
        self.assertEqual(len(re.findall("(?m)^step:", out)), 3)
        messages = [line for line in err.splitlines() if not line.startswith("titan launch: ")]
        self.assertEqual([line for line in messages if not line.startswith("[rank0] [titan] ")], [])
        self.assertEqual(sorted(path.name for path in self.logs.iterdir()), ["rank0.log", "rank1.log"])
        self.assert_holds(self.log(0), *messages, *out.splitlines())
        self.assert_holds(self.log(1), "[rank1] [titan] ", "training completed after step 3")
        self.assertNotRegex(self.log(1), r"(?m)^step:|\[rank0\]")

    def test_two_launchers_as_on_two_nodes(self):
        master = f"127.0.0.1:{self.free_port()}"
        nodes = [self.start([TITAN, "launch", "--nproc", "1", "--nnodes", "2", "--node-rank", node, "--master", master,
                             "--log-dir", self.folder / f"node{node}", "--", *self.arguments()]) for node in range(2)]
        (_, err), _ = self.finish(nodes)
        self.assert_trained_like_one_rank(err.replace("local rank 0 of 1", "local rank 0 of 2"))
        self.assert_holds(err, "rank 0 of 2, local rank 0 of 1", f"store at {master}")
        self.assert_holds((self.folder / "node1" / "rank1.log").read_text(), "[rank1]")

    def test_sigterm_ends_all_ranks_after_the_same_step(self):
        process = self.start(self.launch_command(*ENDLESS))
        self.wait_for_a_step(process)
        process.send_signal(signal.SIGTERM)
        (_, err), = self.finish([process], code=143)
        self.assert_holds(err, "SIGTERM passed on")
        self.assert_stopped_together(self.log(0), self.log(1))

    def test_shared_memory_is_taken_by_itself_and_changes_nothing(self):
        """Three ranks, so that the order of sums shows."""
        ranks = {"auto": "communicate through shared memory", "gloo": None}
        found = {}
        for transport, says in ranks.items():
            self.recipe = [*TINY, "--training.global_batch_size", "6", "--device.transport", transport]
            self.out = self.folder / transport
            command = self.launch_command()
            command[command.index("--nproc") + 1] = "3"
            (_, err), = self.finish([self.start(command)])
            if says:
                self.assert_holds(err, "3 ranks of group 'world.0'", says)
            else:
                self.assertNotIn("shared memory", err)
            found[transport] = [(line[LOSS], line[NORM]) for line in metrics(self.out)]
        self.assertEqual(found["auto"], found["gloo"])
        self.assertEqual(len(found["gloo"]), 3)

    def test_every_rank_has_metrics_of_its_own_where_asked(self):
        self.launch("--metrics.save_for_all_ranks")
        self.assertEqual(sorted(path.name for path in self.out.glob("metrics*")),
                         ["metrics_rank_0.jsonl", "metrics_rank_1.jsonl"])
        folders = sorted(path.parent for path in self.out.rglob("events.out.tfevents.*.0"))
        self.assertEqual([folder.name for folder in folders], ["rank_0", "rank_1"])
        self.assertEqual(folders[0].parent, folders[1].parent)
        for rank in range(2):
            (self.out / f"metrics_rank_{rank}.jsonl").rename(self.out / "metrics.jsonl")
            self.assert_same_steps(metrics(self.out))

    def test_a_seed_that_is_not_set_is_drawn_once_for_all(self):
        text, count = re.subn(r"(?m)^seed = \d+$", "", (ROOT / DEBUG_CONFIG).read_text())
        self.assertEqual(count, 1)
        config = str(self.write("no_seed.toml", text))
        self.recipe = [config if argument == DEBUG_CONFIG else argument for argument in RECIPE]
        self.launch()
        seeds = {seed for rank in range(2)
                 for seed in re.findall(r"debug\.seed is not set; this run uses (\d+)", self.log(rank))}
        self.assertEqual(len(seeds), 1, self.log(0) + self.log(1))
        drawn = metrics(self.out), fingerprints(self.out)
        self.assertNotEqual(drawn[1], one_rank()[1])

        self.out = self.folder / "again"
        self.launch("--debug.seed", seeds.pop())
        self.assertEqual(fingerprints(self.out), drawn[1])
        self.assertEqual([line[LOSS] for line in metrics(self.out)], [line[LOSS] for line in drawn[0]])
        self.assertTrue(all(0 < line[LOSS] < 20 for line in drawn[0]), drawn[0])


class TorchrunTest(RanksCase):
    def start_by_torchrun(self, *more):
        # temporary files of torchrun, in a folder that is removed
        return self.start([TORCHRUN, "--no-python", "--standalone", "--nproc-per-node", "2", TITAN, *self.arguments(*more)],
                          TMPDIR=str(self.folder))

    def test_ranks_meet_at_the_store_of_its_agent(self):
        (out, err), = self.finish([self.start_by_torchrun()])
        self.assert_trained_like_one_rank(err)
        self.assertRegex(err, r"by torchrun \(RANK, WORLD_SIZE, LOCAL_RANK\); store at \S+:\d+ hosted by the agent\n")
        self.assertEqual(len(re.findall("(?m)^step:", out)), 3)

    def reported(self, *more):
        """torchrun's own report after the ranks, with their error files."""
        (_, err), = self.finish([self.start_by_torchrun(*more)], code=1)
        self.assertIn("FAILED", err)
        return err[err.index("FAILED"):]

    def test_it_reports_a_wrong_configuration_in_our_words(self):
        report = self.reported("--optimizer.lr", "fast")
        self.assert_holds(report, "Root Cause", "exitcode  : 2 ",
                          "option 'lr' of optimizer 'AdamW' must be a number > 0, got 'fast'")
        self.assert_nothing_was_written()

    @thorough
    def test_it_reports_the_rank_that_failed_in_a_step(self):
        report = self.reported(*ENDLESS, "--plugins.paths", FAULTS, "--parallelism.further", "test/fault",
                               "--parallelism.test/fault.rank=1", "--parallelism.test/fault.kind=error",
                               "--parallelism.test/fault.step=3")
        self.assertRegex(report, r"rank      : 1 \(local_rank: 1\)\n  exitcode  : 1 ")
        self.assert_holds(report, "in training step 3")
        self.assertNotIn("To enable traceback", report)

    def test_sigterm_ends_all_ranks_after_the_same_step(self):
        process = self.start_by_torchrun(*ENDLESS)
        self.wait_for_a_step(process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=HANG)
        self.assertNotEqual(process.returncode, 0)
        self.assert_all_are_gone()
        self.assert_stopped_together("".join(line for line in err.splitlines(True) if "[titan]" in line))


class EnvironmentTest(RanksCase):
    """Environment variables of other launchers, and flags without a launcher."""

    def slurm_job(self):
        """A job number whose port is reserved until the test ends, as in free_port(), and the port:
        20000 + number % 20000."""
        draw = self.chance()
        while True:
            port = draw.randrange(20000, 32768)  # below the ports that the system assigns
            held = socket.socket()
            self.addCleanup(held.close)
            with contextlib.suppress(OSError):
                held.bind(("", port))  # without SO_REUSEADDR, so that no other process may hold the port
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # but the store may take it
                return 20000 * 613 + port - 20000, port

    def test_a_step_of_slurm(self):
        job, port = self.slurm_job()
        processes = self.start_ranks(variables=lambda rank: {
            "SLURM_JOB_ID": str(job), "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS": "2",
            "SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_NODEID": "0",
            "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)})
        (_, err), _ = self.finish(processes)
        self.assert_trained_like_one_rank(err)
        self.assert_holds(err, f"by Slurm (SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID); store at localhost:{port} ")

    @thorough
    def test_a_step_of_slurm_that_says_the_least(self):
        job, port = self.slurm_job()
        processes = self.start_ranks(variables=lambda rank: {
            "SLURM_JOB_ID": str(job), "SLURM_STEP_ID": "3", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "127.0.0.[1-2]",
            "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)})
        (_, err), _ = self.finish(processes)
        self.assert_trained_like_one_rank(err)
        self.assert_holds(err, f"by Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID); store at 127.0.0.1:{port} ")

    def test_open_mpi(self):
        port = self.free_port()
        processes = self.start_ranks(variables=lambda rank: {
            "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        (_, err), _ = self.finish(processes)
        self.assert_trained_like_one_rank(err)
        self.assert_holds(err, "by Open MPI (OMPI_COMM_WORLD_RANK, ", f"store at 127.0.0.1:{port} hosted by rank 0")

    def flags(self):
        master = f"127.0.0.1:{self.free_port()}"
        return lambda rank: ["--rank", rank, "--world-size", 2, "--master", master]

    def test_flags(self):
        (_, err), _ = self.finish(self.start_ranks(flags=self.flags()))
        self.assert_trained_like_one_rank(err)
        self.assert_holds(err, "by flags (--rank, --world-size); store at 127.0.0.1:")

    @thorough
    def test_flags_with_a_local_rank(self):
        flags = self.flags()
        (_, err), _ = self.finish(self.start_ranks(flags=lambda rank: [*flags(rank), "--local-rank", rank]))
        self.assert_trained_like_one_rank(err)
        self.assert_holds(err, "by flags (--rank, --world-size, --local-rank)")

    def test_sigterm_to_one_rank_ends_both_after_the_same_step(self):
        for asked in range(2):
            with self.subTest(asked=asked):
                self.out = self.folder / f"out{asked}"
                processes = self.start_ranks(*ENDLESS, flags=self.flags())
                self.wait_for_a_step(processes[0])
                processes[asked].send_signal(signal.SIGTERM)
                self.assert_stopped_together(*(err for _, err in self.finish(processes, code=143)))


class SimulatedRankTest(Case):
    """comm.mode = "fake_backend": one process of a run of 512, nothing computed and nothing written."""

    PARAMETERS, LAST_UNIT = 8_030_261_248, 128_256 * 4096 + 4096  # Llama 3 8B; its output head and last norm

    def play(self, *arguments, code=0, **env):
        """Runs in an empty folder, so that every file that it writes is seen."""
        run = titan("train", "--job.config_file", ROOT / "train_configs" / "llama3_8b.toml", "--comm.mode", "fake_backend",
                    "--training.dataset", "jsonl", "--training.dataset_path", ROOT / "tests/assets/corpus/train.jsonl",
                    "--activation_checkpoint.mode", "none", "--checkpoint.no_enable", "--profiling.no_enable_profiling",
                    *arguments, cwd=self.folder, timeout=HANG, **env)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])
        return run

    @staticmethod
    def gibibytes(run):
        return {name.strip(): float(value) for name, value in re.findall(r"(?m)^  (\S.*?) +([\d.]+) GiB", run.stdout)}

    def check(self, run, rank):
        self.assertRegex(run.stderr, rf"simulated one step of rank {rank} of 512 in \d+ ms; nothing was trained or written")
        shown = self.gibibytes(run)
        gib = 2**30
        own = 4 * self.PARAMETERS / 512 / gib
        others = 511 / 512 / gib  # of the result of each gather or reduction
        expected = {"parameters": own, "gradients": own, "optimizer states": 2 * own, "together": 4 * own,
                    # bfloat16, before forward and backward, between which the last unit stays gathered; then
                    # float32
                    "fsdp all_gather": 2 * (2 * self.PARAMETERS - self.LAST_UNIT) * others,
                    "fsdp reduce_scatter": 4 * self.PARAMETERS * others}
        for name, value in expected.items():
            # 512 does not divide all rows: padding, and unequal shards
            self.assertAlmostEqual(shown[name] / value, 1, delta=5e-3, msg=f"{name}: {shown}")

    def test_a_rank_of_512(self):
        self.check(self.play("--world-size", "512", "--rank", "300"), 300)

    def test_the_number_of_gpus_may_come_from_the_environment(self):
        self.check(self.play(NGPU="512"), 0)

    def test_a_rank_there_is_not(self):
        run = self.play("--world-size", "512", "--rank", "512", code=2)
        self.assert_holds(run.stderr, "--rank 512 must be below 512")


if __name__ == "__main__":
    main()
