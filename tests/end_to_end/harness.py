"""Runs the real program as a user would. Every test of this folder uses this module; end_to_end.cmake sets the
environment variables."""

import copy
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
TITAN = os.environ["TITAN_PROGRAM"]
DEBUG_CONFIG = "train_configs/debug_model.toml"

# Seconds after which a test counts as hanging; far more than a slow and busy machine needs. Tests never judge speed by
# a clock, but by the work that the program does.
HANG = 600
SKIPPED = 77  # SKIP_RETURN_CODE of every test
# Seed of all random choices of tests; TITAN_TEST_SEED repeats those of an earlier run.
SEED = int(os.environ.get("TITAN_TEST_SEED") or random.SystemRandom().randrange(10**6))

# A shell starts background jobs with these signals ignored, and every child would inherit that.
for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)

# The debug job, small enough that a step takes a few hundredths of a second.
TINY = ["--job.config_file", DEBUG_CONFIG, "--training.seq_len", "64", "--training.steps", "3"]


def environment(**changes):
    env = {name: value for name, value in os.environ.items() if not name.startswith("TITAN_PLUGIN")}
    env.update(OMP_NUM_THREADS="1", **changes)
    return env


def titan(*arguments, cwd=ROOT, timeout=HANG, **env):
    """Runs `titan ARGUMENT...` until it ends; stdout and stderr as text, returncode."""
    return subprocess.run([TITAN, *map(str, arguments)], cwd=cwd, env=environment(**env), timeout=timeout,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")


def without_privileges():
    """Options of subprocess for a child that obeys file permissions even if root runs the tests: it drops the
    capabilities that bypass them, and owns the files of its parent."""
    if os.geteuid() != 0:
        return {}
    libc = ctypes.CDLL(None, use_errno=True)

    def drop():
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if libc.prctl(24, capability, 0, 0, 0) != 0:  # PR_CAPBSET_DROP: at the next exec
                raise OSError(ctypes.get_errno(), "cannot give up a capability")
    return {"preexec_fn": drop}


def thorough(item):
    """Marks a test method or class for the ctest test NAME.thorough (tests/thorough.txt), which runs only these."""
    item.is_thorough = True
    return item


class ChosenTests(unittest.TestLoader):
    """TITAN_CASES = thorough: marked tests; everyday: all others; unset: all tests."""

    def getTestCaseNames(self, case):
        chosen = os.environ.get("TITAN_CASES")
        names = super().getTestCaseNames(case)
        if not chosen:
            return names
        return [name for name in names if (chosen == "thorough") ==
                (getattr(case, "is_thorough", False) or getattr(getattr(case, name), "is_thorough", False))]


def main():
    """Runs the tests of the started file. unittest counts skipped tests as passed; here the exit code is SKIPPED when
    all were skipped, and 1 when only some were: tests that cannot run everywhere belong in a separate file."""
    program = unittest.main(verbosity=2, exit=False, testLoader=ChosenTests())
    result = program.result
    if not result.wasSuccessful() or not program.test.countTestCases():
        sys.exit(1)
    # a class that setUpClass skips has one entry, which is no TestCase, and none of its tests runs
    passed = result.testsRun - sum(isinstance(test, unittest.TestCase) for test, _ in result.skipped)
    if result.skipped and passed:
        sys.exit("some tests were skipped while others passed, which would look like a pass")
    sys.exit(SKIPPED if result.skipped else 0)


def metrics(folder):
    """The lines of metrics.jsonl; every one must be whole."""
    text = (pathlib.Path(folder) / "metrics.jsonl").read_text()
    assert text.endswith("\n"), f"the last line of metrics.jsonl is cut: {text[-80:]!r}"
    return [json.loads(line) for line in text.splitlines()]


def losses(folder):
    return [line["loss_metrics/global_avg_loss"] for line in metrics(folder)]


class Case(unittest.TestCase):
    """Gives each test its own folder, which is removed afterwards."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="titan_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = self.folder / "out"

    def beside(self, name):
        """This case with separate folders, for concurrent runs."""
        case = copy.copy(self)
        case.out, case.logs = self.folder / name, self.folder / f"logs {name}"
        return case

    def free_port(self):
        """A port for the rendezvous of ranks. Until the test ends the system does not assign it to processes that request any port; no
        process listens at it, so the store, which requests it by number and with SO_REUSEADDR, gets it."""
        held = socket.socket()
        self.addCleanup(held.close)
        held.bind(("127.0.0.1", 0))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return held.getsockname()[1]

    def chance(self):
        """The random generator of this test, seeded by SEED, so that it is reproducible and independent of other tests."""
        print(f"TITAN_TEST_SEED={SEED} draws the same again in {self.id()}", flush=True)
        return random.Random(f"{SEED} {self.id()}")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def train(self, *arguments, out=None, code=0, config=TINY, **env):
        """Trains the tiny job with further `arguments`; fails the test unless it exits with `code`."""
        run = titan("train", *config, "--job.dump_folder", out or self.out, *arguments, **env)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run

    def assert_holds(self, text, *parts):
        for part in parts:
            self.assertIn(part, text)

    def assert_nothing_was_written(self, folder=None):
        folder = folder or self.out
        found = [str(path) for path in folder.rglob("*") if path.relative_to(folder).parts[0] != "launch_logs"]  # logs written by titan launch
        self.assertEqual(found, [])
        self.assertTrue(not folder.exists() or (folder / "launch_logs").exists(), f"{folder} is empty")

    def assert_nothing_is_half_written(self):
        """After an interruption: no temporary file, complete lines only, a configuration that can be used again."""
        self.assertEqual([p for p in self.out.rglob("*") if p.suffix == ".tmp"], [])
        if (self.out / "metrics.jsonl").exists() and (self.out / "metrics.jsonl").stat().st_size:
            metrics(self.out)
        again = titan("train", "--job.config_file", self.out / "config.toml", "--dry-run")
        self.assertEqual(again.returncode, 0, again.stderr)


class Background:
    """A run in the background of the test. Use as a context manager, which ends the run."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([TITAN, *map(str, arguments)], cwd=ROOT, env=environment(), text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def wait_for(self, text):
        """Reads standard output until a line holds `text`."""
        for line in self.process.stdout:
            if text in line:
                return line
        raise AssertionError(f"the run ended before it printed {text!r}: {self.process.stderr.read()}")

    def finish(self, timeout=HANG):
        out, err = self.process.communicate(timeout=timeout)
        return out, err, self.process.returncode
