"""Replica groups for tests: starts them at a real lighthouse, strikes them (tests/bad_plugins/drill.cpp), and compares what they
did with one group that nobody disturbed."""

import json
import os
import pathlib
import signal
import time
import unittest

import lighthouse
from group_process import start_group
from harness import HANG, Case, titan

DRILL = pathlib.Path(os.environ["TITAN_WORK"]).parent / "bad_plugins" / "drill"
ENDLESS = 1_000_000  # steps
CHECKPOINTS = ["--checkpoint.enable", "--checkpoint.interval=5", "--checkpoint.keep_latest_k=2"]
LOSS = "loss_metrics/global_avg_loss"
TOLERANCE = 1e-9  # of a loss in float64, whose sums the groups add in another order
JOB = """
[metrics]
log_freq = 1
loggers = ["jsonl", "console"]
[model]
name = "llama3"
flavor = "debugmodel"
dim = 32
n_layers = 2
n_heads = 2
hf_assets_path = "./tests/assets/tokenizer"
[optimizer]
name = "AdamW"
lr = 1e-3
[lr_scheduler]
warmup_steps = 2
decay_ratio = 0.0
[training]
dataset = "jsonl"
dataset_path = "./tests/assets/corpus/train.jsonl"
local_batch_size = 1
global_batch_size = 6
seq_len = 32
max_norm = 1.0
dtype = "float64"
[activation_checkpoint]
mode = "none"
[debug]
seed = 42
deterministic = true
fingerprints = true
"""


def lines_of(path):
    """Lines of JSON; a kill may have cut the last one."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


class Group:
    """One start of a replica group. As a context manager it is killed at the end."""

    def __init__(self, case, replica, *arguments, ranks=1, restarts=0, within=(), url=None, **env):
        self.replica, self.folder = replica, case.out / f"replica_{replica}"
        self.has_checkpoints = "--checkpoint.enable" in arguments
        self.log = case.folder / f"log {replica}.{len(case.groups)}"
        self.process = start_group(case.job, case.out, replica, arguments, self.log, url or case.lighthouse.url, ranks, restarts,
                                   case.folder / f"ranks {replica}.{len(case.groups)}", within, **env)
        case.groups.append(self)
        case.addCleanup(self.end)

    def end(self):
        if self.is_running():
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def is_running(self):
        return self.process.poll() is None

    def said(self):
        return self.log.read_text(errors="replace")

    def strike(self, stage, number=signal.SIGKILL, microseconds=0, every=1, rank=0):
        """The process sends itself the signal in the next step."""
        new = self.folder / f"strike.{rank}.new"
        new.write_text(f"{stage} {int(number)} {microseconds} {every}\n")
        new.rename(self.folder / f"strike.{rank}")

    def events(self, rank=0):
        """What this start did."""
        return [event for event in lines_of(self.folder / f"drill.{rank}.jsonl") if event["pid"] == self.process.pid]

    def step(self):
        """The last committed step of this group, of any start."""
        event = last_event(self.folder, b'"commit"')
        return event["step"] if event else 0


def last_event(folder, what=b'"', rank=0):
    """The last event of any start of a group that holds the text `what`, or None."""
    path = folder / f"drill.{rank}.jsonl"
    if not path.exists():
        return None
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        lines = file.read().split(b"\n")[:-1]
    return next((json.loads(line) for line in reversed(lines) if what in line and line.startswith(b"{")), None)


class Replicas(Case):
    """`start` starts a group. Sub-classes set the settings of the lighthouse."""

    LIGHTHOUSE = {"min_replicas": 1, "join_timeout_ms": 3000, "heartbeat_timeout_ms": 1000}

    @classmethod
    def setUpClass(cls):
        if not lighthouse.extension():
            raise unittest.SkipTest(lighthouse.MISSING)

    def setUp(self):
        super().setUp()
        self.groups = []
        self.job = self.write("job.toml", JOB)
        self.lighthouse = lighthouse.Lighthouse(**self.LIGHTHOUSE)
        self.addCleanup(self.lighthouse.__exit__)

    def options(self, steps, groups):
        return [f"--training.steps={steps}", f"--fault_tolerance.group_size={groups}", "--plugins.paths", DRILL, "--job.watchers", "test/drill"]

    def start(self, replica, *arguments, steps=30, groups=2, **options):
        return Group(self, replica, *self.options(steps, groups), *arguments, **options)

    def wait_until(self, condition, *running):
        """Fails if one of the groups that must be running ends before."""
        limit = time.monotonic() + HANG
        while not condition():
            for group in running:
                self.assertTrue(group.is_running(), f"replica {group.replica} has ended:\n{group.said()}")
            self.assertLess(time.monotonic(), limit, "it never happened\n" + "\n".join(g.said()[-2000:] for g in self.groups))
            time.sleep(0.01)

    def wait_for_step(self, step, *groups):
        self.wait_until(lambda: all(group.step() >= step for group in groups), *groups)

    def finish(self, *groups, code=0):
        for group in groups:
            self.assertEqual(group.process.wait(HANG), code, f"replica {group.replica}:\n{group.said()}")

    def stop(self, *groups):
        """The groups end within seconds after SIGTERM, at the latest after the step."""
        for group in groups:
            group.process.terminate()
        for group in groups:
            # 75 if they save, or one of them does
            code = 75 if group.has_checkpoints else 143
            self.assertEqual(group.process.wait(HANG), code, f"replica {group.replica}:\n{group.said()}")

    def is_stopped(self, group):
        """Whether SIGSTOP holds the process."""
        return pathlib.Path(f"/proc/{group.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"

    def undisturbed(self, steps, *arguments):
        """Losses and hashes of tokens of each step of one group that no other joins."""
        out = self.folder / "undisturbed"
        run = titan("train", "--job.config_file", self.job, "--job.dump_folder", out, f"--training.steps={steps}", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return recorded(out)

    def assert_as_undisturbed(self, expected, *replicas):
        """Every step that a group has committed had the loss and the tokens of the undisturbed run."""
        for replica in replicas:
            losses, tokens = recorded(self.out / f"replica_{replica}")
            self.assertTrue(losses and tokens, f"replica {replica} has recorded nothing")
            for step, loss in losses.items():
                self.assertAlmostEqual(loss, expected[0][step], delta=TOLERANCE, msg=f"loss of replica {replica}, step {step}")
            wrong = {step: hashes for step, hashes in tokens.items() if hashes != {next(iter(expected[1][step]))}}
            self.assertEqual(wrong, {}, f"tokens of replica {replica}")

    def assert_nothing_is_left(self):
        """No process of a group and no temporary file."""
        left = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if str(self.out) in command_line(pid)]
        self.assertEqual([command_line(pid) for pid in left], [])
        self.assertEqual([path for path in self.out.rglob("*") if path.suffix in (".tmp", ".new")], [])


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def recorded(folder):
    """The last loss and all hashes of the tokens of each step, in every start of a group."""
    folders = sorted(path.parent for path in folder.rglob("metrics.jsonl"))
    losses, tokens = {}, {}
    for one in folders:
        losses.update({line["step"]: line[LOSS] for line in lines_of(one / "metrics.jsonl") if LOSS in line})
        for line in lines_of(one / "fingerprints.jsonl"):
            if "tokens" in line:
                tokens.setdefault(line["step"], set()).add(line["tokens"])
    return losses, tokens
