#!/usr/bin/env python3
"""Measures how fast checkpoints are written and read, compared with dd on the same disk; the cost of an asynchronous save for the
training thread; and whether four ranks read each byte of a one-rank checkpoint once.

A run with synchronous saves, one with asynchronous saves and dd take turns; the other processes are stopped meanwhile. So
each pair is measured at the same time. Ratios are judged by their medians; exit code 1 when one misses its target.

    python3 tests/benchmarks/checkpoint.py                               # about a gigabyte of state, 9 pairs
    python3 tests/benchmarks/checkpoint.py --write docs/results/checkpoints_figures.md
    python3 tests/benchmarks/checkpoint.py --pairs 2 --layers 1          # a quick look

TITAN_PROGRAM names the program; --folder the folder on the measured disk.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
CHUNK = 8 << 20
INTERVAL = {"disabled": 1, "async": 8}  # the background save must end before the next one
SAVE_TARGET, LOAD_TARGET, STALL_TARGET = 0.8, 0.8, 0.1
RANKS = 4
HEADING = """# Figures of checkpoints

`python3 tests/benchmarks/checkpoint.py --write {file}`: {size} of state, {cpus} CPUs. Titan and dd take turns on the
same disk; dd writes with conv=fsync and reads with the page cache dropped, as Titan does.

"""


def flags(layers, out, ranks=1):
    return ["--job.config_file", "train_configs/debug_model.toml", "--model.dim", 1024, "--model.n_layers", layers,
            "--model.n_kv_heads", 16, "--model.n_heads", 16, "--training.seq_len", 4,
            "--training.local_batch_size", RANKS // ranks, "--training.global_batch_size", RANKS,
            "--metrics.no_enable_tensorboard", "--metrics.log_freq", 1, "--lr_scheduler.warmup_steps", 2,
            "--lr_scheduler.decay_ratio", 0, "--checkpoint.enable", "--checkpoint.no_last_save_model_only",
            "--job.dump_folder", out]


class Run:
    """A run that is stopped unless it is its turn."""

    def __init__(self, command, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.said = folder / "said.txt"
        with open(self.said, "w") as said:
            self.process = subprocess.Popen(
                list(map(str, command)), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                env={**os.environ, "OMP_NUM_THREADS": str(max(1, os.cpu_count() // 2))}, start_new_session=True)
        self.seen = 0

    def wait_for(self, pattern, within=600):
        """The next line that matches; polls often, because the time after the line counts for the next turn."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            found = list(re.finditer(pattern, self.said.read_text()))
            if len(found) > self.seen:
                self.seen += 1
                return found[self.seen - 1]
            if self.process.poll() is not None:
                break
            time.sleep(0.005)
        raise RuntimeError(f"'{pattern}' did not come: {self.said.read_text()[-2000:]}")

    def send(self, number):
        os.killpg(self.process.pid, number)

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            self.send(signal.SIGKILL)
        self.process.wait()

    def peak(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


class Saving(Run):
    """Saves alternately with the other run."""

    def __init__(self, mode, layers, folder):
        self.out = folder / mode
        super().__init__([TITAN, "train", *flags(layers, self.out), "--training.steps", 1000000, "--checkpoint.interval",
                          INTERVAL[mode], "--checkpoint.keep_latest_k", 0, "--checkpoint.async_mode", mode], folder / f"{mode}_log")

    def turn(self):
        """(bytes, seconds of writing, seconds for which training was blocked) of one save."""
        self.send(signal.SIGCONT)
        found = self.wait_for(r"saved step (\d+) in '([^']+)': ([\d.]+) MB in ([\d.]+) s .*, training was held for ([\d.]+) s")
        self.send(signal.SIGSTOP)
        self.last = pathlib.Path(found[2])
        return sum(path.stat().st_size for path in self.last.glob("*")), float(found[4]), float(found[5])

    def clear(self):
        """Removes earlier saves, so that the disk does not fill up."""
        for path in self.last.parent.glob("step-*"):
            if path != self.last:
                shutil.rmtree(path)


def copy_by_dd(source, target, size, *options):
    """Returns seconds."""
    start = time.monotonic()
    done = subprocess.run(["dd", f"if={source}", f"of={target}", f"bs={CHUNK}", f"count={size}", "iflag=count_bytes,fullblock",
                           "status=none", *options], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return time.monotonic() - start


def forget(paths):
    """Drops the files from the page cache; the next reader waits for the disk."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure_saves(pairs, layers, folder):
    """[(bytes, titan, dd, held sync, held async)], the last checkpoint, and the bytes of memory that an async save adds."""
    rows = []
    source = pathlib.Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else folder) / f"titan_{os.getpid()}"  # for dd
    sync, background = (Saving(mode, layers, folder) for mode in ("disabled", "async"))
    try:
        background.send(signal.SIGSTOP)
        size = sync.turn()[0]  # the first save of each must create memory and folders
        background.turn()
        with open(source, "wb") as file:
            for begin in range(0, size, CHUNK):
                file.write(os.urandom(min(CHUNK, size - begin)))
        target = folder / "by_dd"
        for number in range(pairs):
            target.unlink(missing_ok=True)
            turns = [lambda: copy_by_dd(source, target, size, "conv=fsync"), sync.turn]
            results = [turn() for turn in (turns if number % 2 else reversed(turns))]
            by_dd, (size, seconds, held) = results if number % 2 else reversed(results)
            _, _, held_async = background.turn()
            rows.append((size, seconds, by_dd, held, held_async))
            print(f"save {number + 1}: {size / 1e6:.1f} MB, Titan {seconds:.3f} s, dd {by_dd:.3f} s; held {held:.3f} s, "
                  f"async {held_async:.4f} s", flush=True)
            sync.clear(), background.clear()
        target.unlink(missing_ok=True)
        memory = background.peak() - sync.peak()
        return rows, sync.last, memory
    finally:
        sync.end(), background.end()
        source.unlink(missing_ok=True)


def resume(layers, checkpoint, folder, ranks=1, enable=True):
    """Runs until the checkpoint is loaded: the log line, and the bytes that its ranks read by system calls."""
    out = folder / "resumed"
    shutil.rmtree(out, ignore_errors=True)
    (out / "checkpoint").mkdir(parents=True)
    (out / "checkpoint" / checkpoint.name).symlink_to(checkpoint)
    launch = [TITAN, "launch", "--nproc", ranks, "--log-dir", folder / "logs", "--"] if ranks > 1 else [TITAN]
    run = Run([*launch, "train", *flags(layers, out, ranks), "--training.steps", 1000000, "--checkpoint.interval", 1000000,
               "--parallelism.data_parallel_shard_degree", ranks, *([] if enable else ["--checkpoint.no_enable"])],
              folder / "resume_log")
    try:
        found = run.wait_for(r"resumed after step \d+ from .* read ([\d.]+) MB in ([\d.]+) s " if enable
                             else r"training \d+ steps of ")
        run.send(signal.SIGSTOP)
        return found, sum(bytes_read(pid) for pid in group(run.process.pid))
    finally:
        run.end()


def group(leader):
    """The process and its descendants."""
    found = [leader]
    for pid in found:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def bytes_read(pid):
    return int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text())[1])


def measure_loads(pairs, layers, checkpoint, folder):
    """[(bytes, titan, dd)]"""
    files, rows = sorted(checkpoint.glob("*.safetensors")), []
    for number in range(pairs):
        def by_titan():
            forget(files)
            found, _ = resume(layers, checkpoint, folder)
            return float(found[1]) * 1e6, float(found[2])
        def by_dd():
            forget(files)
            return sum(copy_by_dd(path, "/dev/null", path.stat().st_size) for path in files)
        turns = [by_dd, by_titan]
        results = [turn() for turn in (turns if number % 2 else reversed(turns))]
        dd, (size, seconds) = results if number % 2 else reversed(results)
        rows.append((size, seconds, dd))
        print(f"load {number + 1}: {size / 1e6:.1f} MB, Titan {seconds:.3f} s, dd {dd:.3f} s", flush=True)
    return rows


def data_bytes(checkpoint):
    """Bytes of all tensors, without headers."""
    return sum(path.stat().st_size - 8 - int.from_bytes(path.read_bytes()[:8], "little")
               for path in checkpoint.glob("*.safetensors"))


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:.3f} ({low:.3f} to {high:.3f})", statistics.median(values)


def report(saves, loads, memory, read, called, stored):
    """The rows of the table, and the figures that miss their targets."""
    size = saves[0][0]
    rows, missed = [], []

    def row(what, ours, theirs, ratios, target, is_met):
        text, median = quartiles(ratios)
        rows.append(f"| {what} | {ours} | {theirs} | {text} | {len(ratios)} | {target} |")
        if not is_met(median):
            missed.append(f"{what}: {median:.3f}, target {target}")

    speed = lambda values: f"{statistics.median(values):.2f} GB/s"
    row("save against dd", speed([size / seconds / 1e9 for size, seconds, *_ in saves]),
        speed([size / dd / 1e9 for size, _, dd, *_ in saves]), [dd / seconds for _, seconds, dd, *_ in saves],
        f"at least {SAVE_TARGET}", lambda x: x >= SAVE_TARGET)
    row("load against dd", speed([size / seconds / 1e9 for size, seconds, _ in loads]),
        speed([size / dd / 1e9 for size, _, dd in loads]), [dd / seconds for _, seconds, dd in loads],
        f"at least {LOAD_TARGET}", lambda x: x >= LOAD_TARGET)
    row("training held: async against sync", f"{statistics.median(row[4] for row in saves):.3f} s",
        f"{statistics.median(row[3] for row in saves):.3f} s", [held_async / held for *_, held, held_async in saves],
        f"under {STALL_TARGET}", lambda x: x < STALL_TARGET)
    for what, found in (("counted", read), ("by read calls", called)):
        ratio = found / stored
        rows.append(f"| {RANKS} ranks load a one-rank checkpoint, {what} | {found / 1e6:.1f} MB | {stored / 1e6:.1f} MB "
                    f"| {ratio:.4f} | 1 | 1 |")
        if abs(ratio - 1) > 0.01:
            missed.append(f"bytes read by {RANKS} ranks, {what}: {found} of {stored}")
    rows.append(f"| memory of an async save, in its state's size | {memory / 1e6:.0f} MB | {size / 1e6:.0f} MB "
                f"| {memory / size:.2f} | 1 | one copy |")
    return rows, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", type=pathlib.Path, help="writes the table there")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--layers", type=int, default=7, help="blocks of 12.8 million parameters, 153 MB of state each")
    parser.add_argument("--folder", type=pathlib.Path, help="on the disk to measure (default: a temporary one)")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="titan_checkpoints_", dir=arguments.folder))
    try:
        saves, checkpoint, memory = measure_saves(arguments.pairs, arguments.layers, folder)
        loads = measure_loads(arguments.pairs, arguments.layers, checkpoint, folder)
        found, called = resume(arguments.layers, checkpoint, folder, ranks=RANKS)
        _, without = resume(arguments.layers, checkpoint, folder, ranks=RANKS, enable=False)
        rows, missed = report(saves, loads, memory, float(found[1]) * 1e6, called - without, data_bytes(checkpoint))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = ("| what | Titan | dd, sync, stored | ratio: median (quartiles) | pairs | target |\n|---|---|---|---|---|---|\n" +
            "\n".join(rows) + "\n")
    print(text + "".join(f"MISSED {line}\n" for line in missed), end="")
    if arguments.write:
        size = f"{saves[0][0] / 1e9:.2f} GB"
        heading = HEADING.format(size=size, cpus=os.cpu_count(), file=arguments.write)
        arguments.write.write_text(heading + text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
