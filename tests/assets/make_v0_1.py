#!/usr/bin/env python3
"""Writes tests/assets/v0.1: files of Titan 0.1 that every later version must read. Ran once; kept to say how they were made.

    tests/assets/make_v0_1.py [build/release/bin/titan]
"""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSETS = ROOT / "tests/assets/v0.1"
sys.path.insert(0, str(ROOT / "tests/assets"))
from jobs_v0_1 import CHECKPOINTS, EVERY_FILE, SAVED  # noqa: E402

TITAN = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/bin/titan")
# Relative, so that no folder of this machine is stored.
WORK = pathlib.Path(tempfile.mkdtemp(prefix="made_assets_", dir=ROOT / "build"))


def run(*words):
    print("titan", *words)
    subprocess.run([TITAN, *map(str, words)], cwd=ROOT, check=True, env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
                   stdout=subprocess.DEVNULL)


def train(name, ranks, *arguments):
    launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
    folder = WORK / name
    run(*launch, "train", *arguments, "--job.dump_folder", folder.relative_to(ROOT))
    return folder


def losses(folder):
    file = next(path for path in (folder / "metrics.jsonl", folder / "metrics_rank_0.jsonl", folder / "metrics_rank_1.jsonl")
                if path.exists() and "global_avg_loss" in path.read_text())
    return {str(line["step"]): line["loss_metrics/global_avg_loss"] for line in map(json.loads, file.read_text().splitlines())
            if "loss_metrics/global_avg_loss" in line and line["step"] > SAVED}


def flight_records(arguments):
    """What two ranks write on SIGUSR2 while they train."""
    folder = WORK / "flight"
    process = subprocess.Popen([TITAN, "launch", "--nproc", "2", "--", "train", *arguments, "--training.steps", "100000",
                                "--checkpoint.no_enable", "--comm.trace_buf_size", "200", "--job.dump_folder", folder.relative_to(ROOT)], cwd=ROOT,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (folder / "metrics.jsonl").exists() or len((folder / "metrics.jsonl").read_text().splitlines()) < 2:
        time.sleep(0.02)
    ranks = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    subprocess.run(["kill", "-USR2", *ranks], check=True)
    while len(list((folder / "comm_traces").glob("rank_*"))) < 2:
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    process.wait()
    return folder / "comm_traces"


def main():
    shutil.rmtree(ASSETS, ignore_errors=True)
    ASSETS.mkdir(parents=True)
    expected = {"losses": {}}
    for name, (arguments, ranks, layout) in CHECKPOINTS.items():
        folder = train(name, ranks, *arguments, *layout)
        expected["losses"][name] = losses(folder)
        shutil.copytree(folder / f"checkpoint/step-{SAVED}", ASSETS / f"{name}/step-{SAVED}")
    # a run's folder, without the checkpoints, which are above
    arguments, ranks, layout = CHECKPOINTS["dense"]
    folder = train("run", ranks, *arguments, *layout, *EVERY_FILE)
    shutil.rmtree(folder / "checkpoint")
    for path in folder.glob("memory_snapshot/*/rank1_memory_snapshot.pickle"):
        path.unlink()  # as large as rank 0's, and of the same form
    shutil.copytree(folder, ASSETS / "run")
    shutil.copytree(flight_records(arguments), ASSETS / "run/comm_traces")
    # text into Megatron's pair of files
    texts = [json.loads(line)["text"][:200] for line in (ROOT / "tests/assets/corpus/validation.jsonl").read_text().splitlines()[:20]]
    (WORK / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    run("tokenize", "--output", (ASSETS / "tokens").relative_to(ROOT), "--job.config_file", "train_configs/debug_model.toml",
        "--training.dataset_path", (WORK / "texts.jsonl").relative_to(ROOT))
    # the manifest of a plugin, as it lies in the file
    plugin = pathlib.Path(TITAN).resolve().parents[1] / "lib/titan/plugins/adamw.plugin.so"
    subprocess.run(["objcopy", f"--dump-section=.titan_plugin={ASSETS / 'adamw.manifest'}", plugin, WORK / "copy"], check=True)
    (ASSETS / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    size = sum(path.stat().st_size for path in ASSETS.rglob("*") if path.is_file())
    print(f"{size / 1e6:.2f} MB")
    for path in sorted(ASSETS.rglob("*")):
        if path.is_file() and re.search(rb"/(root|home|tmp|work)/", path.read_bytes()):
            print("names a folder of this machine:", path.relative_to(ROOT))
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
