"""Runs of replica groups that synchronise rarely, for semi_sync_test.py and tests/benchmarks/semi_sync.py."""

import json
import pathlib
import shutil
import time

import lighthouse
from group_process import start_group
from harness import HANG

# Small enough that a step takes a few hundredths of a second; double, so that the referee sees rounding of 1e-16.
JOB = """
[metrics]
log_freq = 1
loggers = ["jsonl"]
[model]
name = "llama3_ft"
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
global_batch_size = 5
seq_len = 32
steps = 8
dtype = "float64"
[activation_checkpoint]
mode = "none"
[checkpoint]
enable = true
interval = 1
keep_latest_k = 0
last_save_model_only = false
[fault_tolerance]
group_size = 2
[debug]
seed = 42
deterministic = true
"""


class Groups:
    """Two replica groups of one run, and their lighthouse."""

    def __init__(self, folder, *options, num=2, enabled=True, job=JOB, ranks=1):
        self.folder, self.options, self.num, self.enabled, self.ranks = pathlib.Path(folder), options, num, enabled, ranks
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "job.toml").write_text(job)
        self.processes = {}

    def __enter__(self):
        self.lighthouse = lighthouse.Lighthouse(min_replicas=self.num, join_timeout_ms=10000, heartbeat_timeout_ms=1000)
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        self.lighthouse.kill()

    def start(self, replica, *options):
        self.processes[replica] = start_group(self.folder / "job.toml", self.folder, replica if self.enabled else None, [*self.options, *options],
                                              self.folder / f"log_{replica}", self.lighthouse.url, self.ranks,
                                              rank_logs=self.folder / f"ranks_{replica}")
        return self.processes[replica]

    def kill(self, replica):
        self.processes[replica].kill()
        self.processes[replica].wait()

    def needs_groups(self, number):
        """From now on so many groups are a quorum; before, all."""
        self.lighthouse.settings = (number, *self.lighthouse.settings[1:])
        self.lighthouse.restart()

    def log(self, replica):
        return (self.folder / f"log_{replica}").read_text(errors="replace")

    def finish(self, replica):
        code = self.processes[replica].wait(HANG)
        assert code == 0, f"group {replica} ended with {code}:\n{self.log(replica)[-6000:]}"

    def run(self):
        for replica in range(self.num):
            self.start(replica)
        for replica in range(self.num):
            self.finish(replica)
        return self

    def own_folder(self, replica):
        return self.folder / f"replica_{replica}" if self.enabled else self.folder

    def step(self, replica, number):
        """The folder of a checkpoint."""
        return self.own_folder(replica) / "checkpoint" / f"step-{number}"

    def metrics(self, replica):
        """The whole lines: another one may be in writing."""
        file = self.own_folder(replica) / "metrics.jsonl"
        text = file.read_text() if file.exists() else ""
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def wait_for_step(self, replica, number):
        end = time.monotonic() + HANG
        while not any(line["step"] >= number for line in self.metrics(replica)):
            assert self.processes[replica].poll() is None and time.monotonic() < end, self.log(replica)[-6000:]
            time.sleep(0.005)

    def tokens(self, replica, first, last):
        """Learned in the steps first + 1 to last."""
        counts = {0: 0} | {line["step"]: line["n_tokens_learned"] for line in self.metrics(replica)}
        return int(counts[last] - counts[first])

    def copy_until(self, other, step):
        """Begins with the checkpoints of another run up to `step`."""
        for replica in range(self.num):
            for source in other.step(replica, 0).parent.glob("step-*"):
                if int(source.name[5:]) <= step:
                    shutil.copytree(source, self.step(replica, int(source.name[5:])))
        return self
