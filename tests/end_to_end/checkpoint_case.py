"""A small job that saves checkpoints, and checks of them with other software: safetensors reads every file, xxhash
hashes it. Used by checkpoint_{readers,faults,damage,kills}_test.py."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import torch
import xxhash
from safetensors import safe_open
from safetensors.torch import load_file

from harness import HANG, ROOT, TINY, TITAN
from ranks_test import RanksCase, bare_environment

# About 5 MB of state; no warning about a truncated schedule.
SMALL = [*TINY, "--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4", "--model.n_kv_heads", "2",
         "--training.local_batch_size", "1", "--training.global_batch_size", "4", "--metrics.no_enable_tensorboard",
         "--metrics.log_freq", "1", "--lr_scheduler.warmup_steps", "2", "--lr_scheduler.decay_ratio", "0",
         "--checkpoint.enable", "--checkpoint.no_last_save_model_only", "--debug.fingerprints"]


def header(path):
    """The JSON object at the start of a safetensors file, and where the data begins."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(length)), 8 + length


def pieces(folder):
    """[(file, name, offsets, tensor)] of all safetensors files."""
    found = []
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        offsets = json.loads(header(path)[0]["__metadata__"]["DCP_SHARDING_INFO"])
        tensors = load_file(path)
        assert sorted(tensors) == sorted(offsets), path
        found += [(path, name, offsets[name]["saved_offsets"], tensor) for name, tensor in tensors.items()]
    return found


def whole_state(folder):
    """Every tensor of a checkpoint, assembled; fails unless each element is stored exactly once."""
    parts = {}
    for _, name, offsets, tensor in pieces(folder):
        parts.setdefault(name, []).append((offsets, tensor))
    state = {}
    for name, found in parts.items():
        ends = [[o + n for o, n in zip(offsets, tensor.shape)] for offsets, tensor in found]
        whole = torch.zeros([max(column) for column in zip(*ends)], dtype=found[0][1].dtype)
        times = torch.zeros(whole.shape, dtype=torch.int32)
        for (offsets, tensor), end in zip(found, ends):
            place = tuple(slice(a, b) for a, b in zip(offsets, end))
            whole[place] = tensor
            times[place] += 1
        assert (times == 1).all(), f"{name} is not stored exactly once: {found}"
        state[name] = whole
    return state


def with_own_hash(text):
    """The text of a manifest with its own hash as last member, which is that of the text with zeros for its digits."""
    place = text.rindex('"') - 32
    zeroed = text[:place] + 32 * "0" + text[place + 32:]
    return text[:place] + xxhash.xxh3_128_hexdigest(zeroed.encode()) + text[place + 32:]


def write_manifest(folder, manifest):
    """Writes the manifest with the right hash of itself."""
    text = json.dumps({name: value for name, value in manifest.items() if name != "xxh3_128"} | {"xxh3_128": 32 * "0"}, indent=1)
    (folder / "manifest.json").write_text(with_own_hash(text))


def damage(folder):
    """Problems of the files of a complete checkpoint, by its manifest, xxhash and safetensors; empty if there are none."""
    folder = pathlib.Path(folder)
    text = (folder / "manifest.json").read_text()
    manifest = json.loads(text)
    wrong = []
    if with_own_hash(text) != text:
        wrong.append(f"{folder}: its manifest is not what its hash says")
    if folder.name != f"step-{manifest['step']}":
        wrong.append(f"{folder}: its manifest is of step {manifest['step']}")
    listed = {file["name"]: file for file in manifest["files"]}
    there = {path.name for path in folder.iterdir()} - {"manifest.json"}
    if there != set(listed):
        wrong.append(f"{folder}: files {sorted(there)}, listed {sorted(listed)}")
    for name in sorted(there & set(listed)):
        content = (folder / name).read_bytes()
        if len(content) != listed[name]["bytes"] or xxhash.xxh3_128_hexdigest(content) != listed[name]["xxh3_128"]:
            wrong.append(f"{folder / name}: not what the manifest says")
        elif name.endswith(".safetensors"):
            wrong += damaged_tensors(folder / name)
    return wrong


def damaged_tensors(path):
    with safe_open(path, "pt") as file:
        hashes = json.loads(file.metadata()["TITAN_XXH3_128"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    if sorted(hashes) != sorted(tensors):
        return [f"{path}: tensors {sorted(tensors)}, hashes of {sorted(hashes)}"]
    return [f"{path}: {name} has another hash" for name, tensor in tensors.items()
            if xxhash.xxh3_128_hexdigest(tensor.numpy().tobytes()) != hashes[name]]


def content(folder):
    """{path: hash} of every file below a folder."""
    return {str(path): xxhash.xxh3_128_hexdigest(path.read_bytes()) for path in sorted(pathlib.Path(folder).rglob("*"))
            if path.is_file()}


def complete_steps(folder):
    """{step: folder} of the folders with a manifest."""
    return {int(path.name[5:]): path for path in sorted(pathlib.Path(folder).glob("step-*"))
            if (path / "manifest.json").exists()}


def status_of(path):
    """As stat; None if the file does not exist, because a live run may remove files at any moment."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


class Live:
    """A run in the background of the test; its output goes to files. Use as a context manager, which ends the run."""

    def __init__(self, case, command, options=None, **env):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=case.folder, prefix="said_"))
        with open(self.folder / "out", "w") as out, open(self.folder / "err", "w") as err:
            self.process = subprocess.Popen(list(map(str, command)), cwd=ROOT, env=bare_environment(**env),
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err, **(options or {}))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def errors(self):
        return (self.folder / "err").read_text(errors="replace")

    def steps(self):
        return [int(step) for step in re.findall(r"step: +(\d+) ", (self.folder / "out").read_text())]

    def wait_until(self, is_so, within=HANG):
        """Polls every two milliseconds; fails if the run ends before."""
        deadline = time.monotonic() + within
        while not is_so():
            if self.process.poll() is not None:
                raise AssertionError(f"the run ended with {self.process.returncode} before it was so: {self.errors()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"it was not so within {within} s: {self.errors()}")
            time.sleep(0.002)

    def wait_for_step(self, step):
        self.wait_until(lambda: max(self.steps(), default=0) >= step)

    @contextlib.contextmanager
    def held(self):
        """Pauses the run, so that actions of the test are atomic for it. For runs of one process."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # until its last thread has stopped
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def finish(self, within=HANG):
        """The exit code."""
        return self.process.wait(timeout=within)


class CheckpointCase(RanksCase):
    """Runs of the small job in `self.out`, with checkpoints in `self.saved`."""

    def setUp(self):
        super().setUp()
        self.recipe = SMALL

    @property
    def saved(self):
        return self.out / "checkpoint"

    def command(self, ranks, *arguments):
        launch = ["launch", "--nproc", ranks, "--log-dir", self.logs, "--"] if ranks > 1 else []
        return [TITAN, *launch, *self.arguments(*arguments)]

    def run_ranks(self, ranks, *arguments, code=0, prefix=(), within=HANG, **options):
        """`prefix`: a program that starts the command; `options`: of subprocess.run."""
        run = subprocess.run(list(map(str, [*prefix, *self.command(ranks, *arguments)])), cwd=ROOT, env=bare_environment(),
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=within, **options)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run

    def assert_sound(self, folder=None):
        """Checks that every complete checkpoint holds the bytes that were written. Returns the
        checkpoints."""
        found = complete_steps(folder or self.saved)
        for path in found.values():
            self.assertEqual(damage(path), [])
        return found

    @staticmethod
    def resumed_after(text):
        """The step from which a run resumed; 0: it started from scratch."""
        found = re.search(r"resumed after step (\d+) from", text)
        return int(found[1]) if found else 0
