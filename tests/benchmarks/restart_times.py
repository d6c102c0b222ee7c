"""Seconds from the kill of a rank to the end of the first step after it: ordinary restarts of titan launch compared with restarts in
process, of the debug model on two ranks with local checkpoints in memory:

    ninja -C build/release drill.plugin
    python3 tests/benchmarks/restart_times.py --write docs/results/restart_times.md

Each repetition runs every kind once, on a machine that is busy with nothing else. Takes some minutes."""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TITAN = ROOT / "build/release/bin/titan"
DRILL = ROOT / "build/release/tests/bad_plugins/drill"
KINDS = {
    "ordinary": [],
    "in process, without a spare": ["--in-process"],
    "in process, with a spare": ["--in-process", "--spares", "1"],
}
BEGIN, END = "<!-- begin: tests/benchmarks/restart_times.py -->\n", "<!-- end -->\n"
LIMIT = 300


def events(folder, rank):
    path = folder / f"drill.{rank}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []


def wait_until(condition, process):
    limit = time.monotonic() + LIMIT
    while not condition():
        if process.poll() is not None or time.monotonic() > limit:
            sys.exit("the job did not get that far")
        time.sleep(0.01)


def measure(flags, killed):
    """Seconds of one restart after the kill of rank `killed`, and how many processes stayed."""
    with tempfile.TemporaryDirectory(prefix="titan_") as name, tempfile.TemporaryDirectory(prefix="titan_", dir="/dev/shm") as local:
        folder = pathlib.Path(name)
        command = [TITAN, "launch", "--nproc", "2", "--max-restarts", "1", *flags, "--", "train", "--job.config_file",
                   "train_configs/debug_model.toml", "--job.dump_folder", folder, "--training.seq_len", "64", "--training.steps", "100000",
                   "--training.global_batch_size", "2", "--training.local_batch_size", "1", "--debug.seed", "7", "--checkpoint.enable",
                   "--checkpoint.interval", "100000", "--checkpoint.local_folder", local, "--checkpoint.local_interval", "5",
                   "--plugins.paths", DRILL, "--job.watchers", "test/drill"]
        with open(folder / "errors.txt", "w") as errors:
            process = subprocess.Popen(list(map(str, command)), cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            if "--spares" in flags:
                wait_until(lambda: "is ready" in (folder / "errors.txt").read_text(), process)
            wait_until(lambda: sum(event["what"] == "commit" for event in events(folder, 0)) >= 20, process)
            (folder / f"strike.{killed}").write_text(f"forward {int(signal.SIGKILL)} 0 1")
            wait_until(lambda: any(event["what"] == "strike" for event in events(folder, killed)), process)
            begin = next(event["time"] for event in events(folder, killed) if event["what"] == "strike")

            def restarted():
                return [e["time"] for e in events(folder, 0) if e["what"] == "commit" and e["time"] > begin
                        and any(s["what"] == "start" and begin < s["time"] < e["time"] for s in events(folder, 0))]
            wait_until(restarted, process)
            stayed = sum(len({e["pid"] for e in events(folder, rank) if e["what"] == "start"}) == 1 for rank in range(2))
            assert re.search("resumed after step", (folder / "errors.txt").read_text())
            return restarted()[0] - begin, stayed
        finally:
            process.send_signal(signal.SIGKILL)  # its ranks end with it
            process.wait()
            wait_for_ranks(name)


def wait_for_ranks(text):
    def left():
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and int(entry.name) != os.getpid() and text.encode() in (entry / "cmdline").read_bytes():
                    return True
            except OSError:
                pass
        return False
    while left():
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--write", type=pathlib.Path, help="the page whose table to replace")
    arguments = parser.parse_args()
    seconds = {(kind, killed): [] for killed in (0, 1) for kind in KINDS}
    for repeat in range(arguments.repeats):
        for killed in (0, 1):
            kinds = list(KINDS)
            random.Random(repeat).shuffle(kinds)
            for kind in kinds:
                took, stayed = measure(KINDS[kind], killed)
                assert stayed == (0 if kind == "ordinary" else 1), (kind, stayed)
                seconds[kind, killed].append(took)
                print(f"{kind}, rank {killed} killed: {took:.2f} s", flush=True)
    lines = [f"{arguments.repeats} repetitions; load average of the machine at the end: {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores.\n\n",
             "| restart | killed rank | median | least | most |\n", "|---|---|---|---|---|\n"]
    for (kind, killed), times in seconds.items():
        lines.append(f"| {kind} | {killed} | {statistics.median(times):.2f} s | {min(times):.2f} s | {max(times):.2f} s |\n")
    print("".join(lines))
    if arguments.write:
        page = arguments.write.read_text()
        head, rest = page.split(BEGIN)
        arguments.write.write_text(head + BEGIN + "".join(lines) + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
