"""Shared by the stages of run_all.py: runs of Titan's programs, and the lines that run_all.py reads."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import threading
import time

LOSS = "loss_metrics/global_avg_loss"
_printing = threading.Lock()


def emit(value):
    with _printing:
        print(json.dumps(value), flush=True)


def check(name, ok, value=None, limit=None, says=None):
    """One finding. A value that is not finite never passes."""
    found = {"check": name, "ok": bool(ok), "value": value, "limit": limit}
    if says:
        found["says"] = str(says)[-1500:]
    emit(found)
    return bool(ok)


def within(name, value, limit, says=None):
    return check(name, value is not None and value <= limit, value, limit, says)


def figure(name, value):
    emit({"figure": name, "value": value})


def row(table, **columns):
    emit({"table": table, "row": columns})


class Run:
    """A finished run of a program."""

    def __init__(self, words, code, stdout, stderr, seconds, folder=None):
        self.words, self.code, self.stdout, self.stderr, self.seconds, self.folder = words, code, stdout, stderr, seconds, folder

    def metrics(self):
        file = self.folder / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def values(self, tag):
        return [line[tag] for line in self.metrics() if tag in line]

    def losses(self):
        return self.values(LOSS)

    def why(self):
        lines = [line for line in self.stderr.splitlines() if line.strip()]
        return f"exit code {self.code}: " + " / ".join(lines[-12:])


class Context:
    """Where programs and files are, on which device to run, and how much time is left."""

    def __init__(self, arguments):
        self.root, self.programs, self.device = arguments.root, arguments.programs, arguments.device
        self.out, self.work = arguments.out, arguments.out / "work"
        self.is_small = arguments.device == "cpu"
        self.deadline = time.monotonic() + arguments.seconds
        self.failed = arguments.failed
        self.plugins = self.programs.parent / "lib/titan/plugins"
        self.environment = dict(os.environ)
        if self.is_small:
            self.environment["OMP_NUM_THREADS"] = "1"

    def gpus(self):
        """How many GPUs there are; one on a CPU."""
        if self.is_small:
            return 1
        run = self.run("/usr/bin/env", "nvidia-smi", "--query-gpu=name", "--format=csv,noheader", timeout=15)
        return max(1, len(run.stdout.split("\n")) - 1)

    def left(self):
        return self.deadline - time.monotonic()

    def run(self, program, *words, timeout=None, folder=None, **environment):
        """Runs a program of the bundle from its root. A program that exceeds its time counts as failed."""
        words = [str(self.programs / program) if "/" not in str(program) else str(program), *map(str, words)]
        begin = time.monotonic()
        # a little less than the stage's limit, so that the stage can still report which program
        # hung
        limit = max(1, min(timeout or 1e9, self.left() - 1))
        try:
            done = subprocess.run(words, cwd=self.root, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=limit, check=False)
            run = Run(words, done.returncode, done.stdout, done.stderr, time.monotonic() - begin, folder)
        except subprocess.TimeoutExpired as end:
            def text(stream):
                return stream.decode(errors="replace") if isinstance(stream, bytes) else stream or ""
            run = Run(words, None, text(end.stdout), text(end.stderr) + f"\nended after {limit:.0f} s", limit, folder)
        sys.stderr.write(f"\n$ {' '.join(run.words)}\n# exit code {run.code}, {run.seconds:.1f} s\n{run.stderr[-6000:]}\n")
        return run

    def fresh(self, name):
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def train(self, name, *flags, config="debug_model", steps=10, device=None, launch=(), keep=False, timeout=None, **environment):
        """`titan train` of a recipe, every step logged into the run's folder."""
        folder = self.work / name if keep else self.fresh(name)
        job = ["train", "--job.config_file", f"train_configs/{config}.toml", "--job.dump_folder", folder, "--device.name",
               device or self.device, "--training.steps", steps, "--metrics.log_freq", 1, "--metrics.loggers", "jsonl",
               "--metrics.no_enable_tensorboard", *flags]
        return self.run("titan", *launch, *job, folder=folder, timeout=timeout, **environment)

    def side_by_side(self, jobs, workers=8):
        """{name: function} -> {name: result}, several at a time, for which 16 cores and the card's memory
        suffice."""
        with concurrent.futures.ThreadPoolExecutor(1 if self.is_small else workers) as pool:
            waiting = {name: pool.submit(job) for name, job in jobs.items()}
            return {name: future.result() for name, future in waiting.items()}

    def relay(self, program, *words, prefix, **environment):
        """Runs a program that prints JSON Lines; each becomes a row of a table, and a check where it has `ok`."""
        run = self.run(program, *words, **environment)
        for line in run.stdout.splitlines():
            try:
                item = json.loads(line)
            except ValueError:
                continue
            if not isinstance(item, dict):
                continue
            if "ok" in item:
                name = " ".join(str(item[key]) for key in ("operation", "shape", "dtype") if item.get(key))
                # an error that is NaN or infinite is a text
                worst = max((o for o in item.get("outputs", []) if isinstance(o.get("error"), (int, float))),
                            key=lambda o: o["error"] / o["limit"] if o.get("limit") else 0, default={})
                check(f"{prefix}: {name}", item["ok"], worst.get("error"), worst.get("limit"),
                      None if item["ok"] else json.dumps(item)[:1500])
            row(prefix, **item)
        return run


def tensors_of(folder):
    """{name: sha256 of type, shape and bytes} of every tensor in the safetensors files of a folder; shards of one name are
    combined in the order of their files."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("**/*.safetensors")):
        data = path.read_bytes()
        (size,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + size])
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            digest = found.setdefault(name, hashlib.sha256())
            digest.update(f"{entry['dtype']}{entry['shape']}".encode() + data[begin:end])
    return {name: digest.hexdigest() for name, digest in found.items()}


def same_tensors(name, a, b):
    """Checks that two checkpoint steps hold the same bits."""
    first, second = tensors_of(a), tensors_of(b)
    differing = sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
    return check(name, first and not differing, len(differing), 0,
                 f"{len(first)} and {len(second)} tensors; differing: {differing[:5]}")


def largest_difference(found, expected):
    """The largest relative difference of pairs; None if the lengths differ."""
    if not found or len(found) != len(expected):
        return None
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(found, expected))


def ran(name, run):
    return check(f"{name} runs", run.code == 0, run.code, 0, None if run.code == 0 else run.why())
