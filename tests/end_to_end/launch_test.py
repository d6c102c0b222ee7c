"""`titan launch`: ranks as processes. Most tests start a small script instead of Titan (launch_case.py)."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness import HANG, TITAN, environment, main, titan
from launch_case import LaunchCase


class CommandTest(LaunchCase):
    """Titan itself as the ranks."""

    def test_every_rank_runs_the_command(self):
        alone = titan("list")
        run = titan("launch", "--nproc", "2", "--", "list", cwd=self.folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, alone.stdout)
        folder = re.fullmatch(r"titan launch: 2 ranks; logs in (\./outputs/launch_logs/\S+)\n", run.stderr)
        self.assertTrue(folder, run.stderr)
        logs = sorted((self.folder / folder.group(1)).iterdir())
        self.assertEqual([path.name for path in logs], ["rank0.log", "rank1.log"])
        for path in logs:
            self.assertEqual(path.read_text(), alone.stdout)

    def test_logs_of_a_training_lie_in_its_folder(self):
        config = self.folder / "job.toml"
        config.write_text('[job]\ndump_folder = "./here"\n[training]\nno_such_key = 1\n')
        for arguments, folder in (([], "./here"), (["--job.dump_folder", "./there"], "./there"), (["--job.dump_folder=./there"], "./there")):
            run = titan("launch", "--nproc", "2", "--", "train", "--job.config_file", config, *arguments, cwd=self.folder)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertRegex(run.stderr, rf"^titan launch: 2 ranks; logs in {re.escape(folder)}/launch_logs/\S+\n")
            self.assertTrue(any((self.folder / folder / "launch_logs").glob("*/rank1.log")))

    def test_a_wrong_configuration_ends_every_rank_and_is_not_tried_again(self):
        run = titan("launch", "--nproc", "2", "--max-restarts", "3", "--log-dir", self.logs, "--", "train", "--training.step", "5")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "--training.step", "ended with exit code 2", str(self.logs / "rank"))
        self.assertNotIn("restart", run.stderr)

    def test_help_names_every_flag(self):
        run = titan("launch", "--help")
        self.assertEqual(run.returncode, 0)
        self.assert_holds(run.stdout, *"--nproc --nnodes --node-rank --master --log-dir --grace --max-restarts --program".split())
        self.assertRegex(titan("--help").stdout, r"(?m)^  launch  +start N ranks")

    def test_wrong_flags_start_nothing(self):
        for arguments, part in [
                (["--", "list"], "--nproc is missing"),
                (["--nproc", "2"], "there is nothing to start"),
                (["--nproc", "2", "list"], "put the command to start after '--'"),
                (["--nproc", "2", "--", "launch"], "cannot start titan launch"),
                (["--nproc", "0", "--", "list"], "--nproc = '0'"),
                (["--nproc", "-1", "--", "list"], "--nproc"),
                (["--procs", "2", "--", "list"], "--procs"),
                (["--nproc", "2", "--grace", "soon", "--", "list"], "--grace = 'soon'"),
                (["--nproc", "2", "--nnodes", "2", "--node-rank", "2", "--master", "n:1", "--", "list"], "--node-rank = '2'"),
                (["--nproc", "2", "--nnodes", "2", "--node-rank", "1", "--", "list"], "--master host:port is missing"),
                (["--nproc", "2", "--master", "n:70000", "--", "list"], "'70000' is not an integer from 1 to 65535"),
                (["--nproc", "2", "--program", "/nowhere/titan", "--", "list"], "there is no program '/nowhere/titan'")]:
            run = titan("launch", *arguments, cwd=self.folder)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertTrue(run.stderr.startswith("error: "), run.stderr)
            self.assert_holds(run.stderr, part)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["rank.py"])

    def test_a_folder_for_logs_that_cannot_be_made_is_named(self):
        run = titan("launch", "--nproc", "1", "--log-dir", self.program / "logs", "--", "list")
        self.assertEqual(run.returncode, 1)
        self.assert_holds(run.stderr, "error: cannot make the folder", str(self.program / "logs"))


class OutputTest(LaunchCase):
    def test_rank_0_is_shown_as_it_is_and_all_are_logged(self):
        run = self.launch(3, "code", "all", "0")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, self.log(0))
        for rank in range(3):
            self.assertRegex(self.log(rank), rf"^rank {rank} pid \d+ group \d+\n$")

    def test_log_rank_chooses_who_is_shown(self):
        run = self.launch(3, "code", "all", "0", LOG_RANK="1,2")
        lines = sorted(run.stdout.splitlines())
        self.assertEqual([line[:15] for line in lines], ["[rank1]: rank 1", "[rank2]: rank 2"])
        self.assertEqual(self.launch(3, "code", "all", "0", LOG_RANK="2").stdout[:7], "rank 2 ")

    def test_a_rank_there_is_not_cannot_be_shown(self):
        run = self.launch(2, "code", "all", "0", LOG_RANK="2")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "LOG_RANK = '2' is not an integer from 0 to 1")

    def test_streams_stay_apart(self):
        run = self.launch(1, "fail", 0)
        self.assertEqual(run.stdout.splitlines()[-1], "working")
        self.assert_holds(run.stderr, "error: rank 0 has no data\n  while looking for it\n")
        self.assert_holds(self.log(0), "working\nerror: rank 0 has no data\n")

    def test_every_line_arrives(self):
        run = self.launch(2, "count")
        expected = [f"line {i}" for i in range(20000)]
        self.assertEqual(run.stdout.splitlines()[1:], expected)
        self.assertEqual(self.log(1).splitlines()[1:], expected)

    def test_a_reader_that_leaves_does_not_end_the_ranks(self):
        process = self.start(2, "count")
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(HANG), 0)
        self.assertEqual(self.log(0).splitlines()[-1], "line 19999")

    def test_signals_are_served_while_nobody_reads(self):
        process = self.start(2, "flood")
        pids = self.pids(2)
        self.wait_for("x{1000}\n(?s:.{200000})", 0)  # more than a pipe holds
        process.send_signal(signal.SIGTERM)
        limit = time.monotonic() + HANG
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < limit:
            time.sleep(0.005)
        self.assert_gone(pids)
        process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 143)

    def test_ranks_have_nothing_to_read(self):
        self.launch(2, "read")
        self.assert_holds(self.log(1), "read ''")


class EnvironmentTest(LaunchCase):
    def variables(self, nproc, **env):
        run = self.launch(nproc, "environment", **env)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(self.log(path).splitlines()[-1]) for path in range(nproc)]

    def test_ranks_know_their_place(self):
        ranks = self.variables(3, OMP_NUM_THREADS="")
        self.assertEqual([rank["RANK"] for rank in ranks], ["0", "1", "2"])
        self.assertEqual([rank["LOCAL_RANK"] for rank in ranks], ["0", "1", "2"])
        for name, value in {"WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "GROUP_RANK": "0", "MASTER_ADDR": "127.0.0.1",
                            "TITAN_LAUNCHER": "titan", "MASTER_PORT": ranks[0]["MASTER_PORT"],
                            "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // 3))}.items():
            self.assertEqual({rank[name] for rank in ranks}, {value}, name)
        self.assertEqual(len({rank["TORCHELASTIC_ERROR_FILE"] for rank in ranks}), 3)
        self.assertNotIn("TORCHELASTIC_USE_AGENT_STORE", ranks[0])

    def test_the_users_number_of_threads_stays(self):
        self.assertEqual(self.variables(2, OMP_NUM_THREADS="7")[0]["OMP_NUM_THREADS"], "7")

    def test_torchruns_variables_are_defaults_of_flags(self):
        run = subprocess.run([TITAN, "launch", "--program", str(self.program), "--", "environment", "none"], cwd=self.folder,
                             env=environment(PET_NPROC_PER_NODE="2", PET_NNODES="3", PET_NODE_RANK="2", PET_MASTER_ADDR="job-0",
                                             PET_MASTER_PORT="4000", PET_LOG_DIR=str(self.logs), LOG_RANK="5"),
                             capture_output=True, text=True, timeout=HANG)
        self.assertEqual(run.returncode, 0, run.stderr)
        variables = json.loads(run.stdout.splitlines()[-1])
        for name, value in {"RANK": "5", "WORLD_SIZE": "6", "LOCAL_RANK": "1", "GROUP_RANK": "2", "MASTER_ADDR": "job-0",
                            "MASTER_PORT": "4000"}.items():
            self.assertEqual(variables[name], value, name)
        self.assert_holds(run.stderr, "2 ranks here, 6 on 3 nodes")
        run = self.launch(1, "environment", PET_NPROC_PER_NODE="4")
        self.assertEqual(json.loads(run.stdout.splitlines()[-1])["WORLD_SIZE"], "1")

    def test_ranks_meet_at_a_free_port(self):
        self.assertEqual(self.launch(4, "meet").stdout.splitlines()[-1], "met 1 2 3")

    def test_nodes_meet_at_the_master(self):
        flags = ["--nnodes", "2", "--master", f"127.0.0.1:{self.free_port()}", "--node-rank"]
        first = self.start(2, "meet", flags=[*flags, "0"])
        second = self.start(2, "meet", flags=[*flags, "1"])
        self.assertEqual(first.communicate(timeout=HANG)[0].splitlines()[-1], "met 1 2 3")
        second.communicate(timeout=HANG)
        self.assertEqual((first.returncode, second.returncode), (0, 0))
        self.assertEqual(sorted(path.name for path in self.logs.iterdir()), [f"rank{rank}.log" for rank in range(4)])


class FailureTest(LaunchCase):
    def test_the_first_failure_is_named_with_its_last_lines(self):
        error_file = self.folder / "pod" / "error.json"
        run = self.launch(3, "fail", 2, TORCHELASTIC_ERROR_FILE=str(error_file))
        self.assertEqual(run.returncode, 5)
        self.assertRegex(run.stderr, rf"error: rank 2 \(pid \d+\) ended with exit code 5; its last lines \({self.logs}/rank2.log\):\n"
                                     r"    rank 2 pid \d+ group \d+\n    port \d+\n    working\n"
                                     r"    error: rank 2 has no data\n      while looking for it\n")
        self.assert_holds(run.stderr, "ended by this launcher, without an error of their own: 0, 1")
        message = json.loads(error_file.read_text())["message"]
        self.assertRegex(message["message"], r"^rank 2 \(pid \d+\) ended with exit code 5: error: rank 2 has no data$")
        self.assertTrue(message["extraInfo"]["py_callstack"].startswith(message["message"]))
        self.assertLess(abs(int(message["extraInfo"]["timestamp"]) - time.time()), 600)

    def test_a_shown_rank_is_not_quoted_again(self):
        run = self.launch(2, "fail", 0)
        self.assertEqual(run.returncode, 5)
        self.assert_holds(run.stderr, "ended with exit code 5; its output is above and in ")
        self.assertEqual(run.stderr.count("has no data"), 1)

    def test_what_others_said_is_summed_up(self):
        run = self.launch(3, "fail", "all")
        self.assertEqual(run.returncode, 5)
        others = re.findall(r"(?m)^  rank (\d) ended with exit code 5: error: rank \1 has no data$", run.stderr)
        self.assertEqual(len(others), 2, run.stderr)

    def ten_times(self, asked, victim, number, flags=()):
        """Ten groups of three ranks; a signal ends one rank of each. Returns exit codes and output of the launchers."""
        groups = []
        for repeat in range(10):
            self.logs = self.folder / f"logs{repeat}"
            process = self.start(3, asked, flags=flags)
            groups.append((process, self.pids(3)))
        for process, pids in groups:
            os.kill(pids[victim], number)
        for process, pids in groups:
            out, err = process.communicate(timeout=HANG)
            self.assert_gone(pids)
            self.assert_holds(err, f"error: rank {victim} (pid {pids[victim]}) was ended by signal {number:d} ({number.name})")
            self.assertEqual(process.returncode, 128 + number)

    def test_ten_times_a_killed_rank_ends_its_group(self):
        self.ten_times("wait", 1, signal.SIGKILL)

    def test_ten_times_a_rank_that_does_not_hear_is_killed(self):
        self.ten_times("deaf", 2, signal.SIGABRT, flags=["--grace", "0.1"])

    def test_ranks_die_with_their_launcher(self):
        process = self.start(3, "deaf")
        pids = self.pids(3)
        process.kill()
        process.wait()
        limit = time.monotonic() + HANG  # the process that inherits them must reap them
        while time.monotonic() < limit and any(self.runs(pid) for pid in pids):
            time.sleep(0.005)
        self.assertEqual([pid for pid in pids if self.runs(pid)], [])

    @staticmethod
    def runs(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def test_a_rank_that_ends_well_does_not_end_the_others(self):
        process = self.start(2, "code", 0, "0")
        pids = self.pids(2)
        while pathlib.Path(f"/proc/{pids[0]}").exists():
            time.sleep(0.005)
        self.assertTrue(self.runs(pids[1]))
        os.kill(pids[1], signal.SIGSEGV)
        self.assertEqual(process.wait(HANG), 139)


class RestartTest(LaunchCase):
    def test_the_whole_group_starts_anew(self):
        run = self.launch(2, "restart", 1, flags=["--max-restarts", "3"])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_holds(run.stderr, "restart 1 of 3", "restart 2 of 3")
        self.assertNotIn("restart 3 of 3", run.stderr)
        self.assertEqual(self.log(0).count("rank 0 pid"), 3)
        self.assertEqual(re.findall("--- restart .", self.log(1)), ["--- restart 1", "--- restart 2"])
        ports = re.findall(r"port (\d+)", self.log(1))
        self.assertEqual(len(ports), 3)
        self.assertGreater(len(set(ports)), 1)

    def test_restarts_come_to_an_end(self):
        run = self.launch(2, "fail", "all", flags=["--max-restarts", "1"])
        self.assertEqual(run.returncode, 5)
        self.assertEqual(self.log(0).count("rank 0 pid"), 2)

    def test_a_stop_is_not_followed_by_a_restart(self):
        for asked, number in (("wait", signal.SIGTERM), ("leave", signal.SIGUSR1)):
            self.logs = self.folder / asked
            process = self.start(2, asked, flags=["--max-restarts", "3"])
            self.pids(2)
            process.send_signal(number)
            out, err = process.communicate(timeout=HANG)
            self.assertEqual(process.returncode, 143)
            self.assertNotIn("restart", err)
            self.assertNotIn("fail", err)


class SignalTest(LaunchCase):
    def test_signals_are_passed_on_once(self):
        process = self.start(2, "listen")
        pids = self.pids(2)
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            process.send_signal(number)
            for rank in range(2):
                self.wait_for(f"took {number.name}", rank)
        process.send_signal(signal.SIGUSR1)  # not the first time
        process.send_signal(signal.SIGTERM)  # after SIGHUP, the second signal that requests the end
        out, err = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 143)
        self.assertEqual(self.log(1).count("took SIGUSR1"), 1)
        self.assert_holds(err, "SIGUSR1 passed on", "SIGHUP passed on to the ranks; once more kills", "SIGTERM once more: killing")
        self.assert_gone(pids)

    def test_a_stop_is_no_failure(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            self.logs = self.folder / number.name
            process = self.start(2, "wait")
            pids = self.pids(2)
            process.send_signal(number)
            out, err = process.communicate(timeout=HANG)
            self.assertEqual(process.returncode, code, err)
            self.assertNotIn("error:", err.replace("KeyboardInterrupt", ""))
            self.assert_gone(pids)

    def test_the_second_request_kills(self):
        process = self.start(2, "deaf")
        pids = self.pids(2)
        process.send_signal(signal.SIGTERM)
        while "passed on" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 130)
        self.assert_holds(err, "SIGINT once more: killing every rank")
        self.assert_gone(pids)

    def test_what_was_to_be_ignored_stays_ignored(self):
        process = self.start(2, "wait", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.pids(2)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 143)
        self.assertNotIn("SIGHUP", err)

    def test_ranks_have_process_groups_of_their_own(self):
        process = self.start(2, "wait")
        for rank, pid in enumerate(self.pids(2)):
            self.assert_holds(self.log(rank), f"rank {rank} pid {pid} group {pid}\n")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=HANG)


if __name__ == "__main__":
    main()
