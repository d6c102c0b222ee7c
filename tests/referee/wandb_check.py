"""Reads the wandb logger's files with wandb's own programs and uploads them to a fake server (wandb_server.py): rows,
last values, configuration, name, tags and exit code arrive, also for a resumed run, a killed run and one that still
runs.

    wandb_check.py --titan build/release/bin/titan

It runs in a Python that has wandb (tools/long_checks.sh makes one); the everyday tests decode the files themselves.
"""

import argparse
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

import wandb
from wandb.proto import wandb_internal_pb2
from wandb_server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLD = {"WANDB_TEAM": "acme", "WANDB_PROJECT": "llamas", "WANDB_RUN_NAME": "first", "WANDB_RUN_NOTES": "of note",
        "WANDB_RUN_TAGS": "a,b", "WANDB_RUN_GROUP": "g", "WANDB_RUN_JOB_TYPE": "t"}


def environment(**more):
    return {**{name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}, "OMP_NUM_THREADS": "1", **more}


def start(titan, out, *flags, **told):
    arguments = ["train", "--job.config_file", "train_configs/debug_model.toml", "--training.seq_len", "64", "--training.steps", "6",
                 "--metrics.log_freq", "1", "--metrics.enable_wandb", "--metrics.loggers", "jsonl", "--checkpoint.enable",
                 "--checkpoint.interval", "2", "--job.dump_folder", out]
    return subprocess.Popen([titan, *map(str, arguments), *map(str, flags)], cwd=ROOT, text=True, stderr=subprocess.PIPE,
                            env=environment(**told))


def train(titan, out, *flags, **told):
    process = start(titan, out, *flags, **told)
    said = process.communicate()[1]
    assert process.returncode == 0, said


def sync(server, home, *words):
    command = [pathlib.Path(sys.executable).with_name("wandb"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=home, stdin=subprocess.DEVNULL,
                          env=environment(WANDB_BASE_URL=server.url, WANDB_API_KEY="x" * 40, HOME=str(home)))
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def folders(out):
    return sorted(out.glob("wandb/offline-run-*"))


def rows_of(out):
    """The logged rows of metrics.jsonl, by step."""
    found = {}
    for line in (out / "metrics.jsonl").read_text().splitlines():
        line = json.loads(line)
        found.setdefault(line["step"], {}).update({k: v for k, v in line.items() if k not in ("step", "wall_time")})
    return found


def plain(row):
    return {key: value for key, value in row.items() if not key.startswith("_")}


def by_wandbs_reader(folder):
    """The kinds of the records, parsed by wandb's own protobuf classes."""
    (path,) = folder.glob("*.wandb")
    data, at, payload, kinds = path.read_bytes(), 7, b"", []
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        checksum, size, kind = struct.unpack("<IHB", data[at:at + 7])
        chunk = data[at + 7:at + 7 + size]
        assert zlib.crc32(bytes([kind]) + chunk) == checksum
        payload, at = payload + chunk, at + 7 + size
        if kind in (1, 4):
            record = wandb_internal_pb2.Record.FromString(payload)
            assert not record.FindInitializationErrors() and record.num == len(kinds) + 1
            kinds.append(record.WhichOneof("record_type"))
            payload = b""
    return kinds


def check(titan, folder):
    home = folder / "home"
    home.mkdir()
    out = folder / "one"
    train(titan, out, **TOLD)
    kinds = by_wandbs_reader(folders(out)[0])
    assert kinds[0] == "run" and kinds[-1] == "exit" and kinds.count("history") == 6, kinds
    with Server() as server:
        sync(server, home, "sync", folders(out)[0])
        (run,) = server.runs.values()
        assert {row["_step"]: plain(row) for row in run.rows()} == rows_of(out)
        assert run.exit_code == 0 and run.is_complete
        for key, value in rows_of(out)[6].items():
            assert run.summary[key] == value, key
        assert run.config["training"]["steps"] == 6 and run.config["training"]["seq_len"] == 64
        told = {key: run.last(key) for key in ("entity", "project", "displayName", "notes", "tags", "groupName", "jobType")}
        assert told == {"entity": "acme", "project": "llamas", "displayName": "first", "notes": "of note", "tags": ["a", "b"],
                        "groupName": "g", "jobType": "t"}, told
        print(f"wandb {wandb.__version__}: {len(run.history)} rows, the last values, the configuration and the names arrived")

        first = rows_of(out)
        train(titan, out, "--checkpoint.load_step", "4", "--training.steps", "8", **TOLD)
        sync(server, home, "sync", folders(out)[1])
        assert [row["_step"] for row in run.rows()] == [1, 2, 3, 4, 5, 6, 7, 8], run.rows()
        assert {row["_step"]: plain(row) for row in run.rows()} == rows_of(out) | first
        print("a resumed run continued under its id, after the earlier rows")

    killed = start(titan, folder / "two", "--training.steps", "100000")
    for line in killed.stderr:
        if "saved step 8" in line:  # at least three rows have left the logging thread
            break
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    with Server() as server:
        sync(server, home, "sync", folders(folder / "two")[0])
        (run,) = server.runs.values()
        steps = [row["_step"] for row in run.rows()]
        assert steps == list(range(1, len(steps) + 1)) and len(steps) >= 3, steps
        assert run.exit_code != 0 and run.summary
        print(f"a killed run: its {len(steps)} rows arrived, and it does not count as finished")

    live = start(titan, folder / "three", "--training.steps", "100000", WANDB_MODE="online")
    for line in live.stderr:
        if "wandb beta sync --live" in line:
            break
    with Server() as server:
        command = [pathlib.Path(sys.executable).with_name("wandb"), "beta", "sync", "--yes", "--live", folders(folder / "three")[0]]
        follower = subprocess.Popen(command, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                    env=environment(WANDB_BASE_URL=server.url, WANDB_API_KEY="x" * 40, HOME=str(home)))
        server.wait_for(lambda: any(len(run.history) > 2 for run in server.runs.values()))
        assert live.poll() is None
        live.terminate()
        live.communicate()
        assert follower.wait(timeout=600) == 0
        (run,) = server.runs.values()
        assert [row["_step"] for row in run.rows()] == sorted(rows_of(folder / "three")), "rows are missing"
        assert run.exit_code == 0
        print(f"rows arrived while the run went on, {len(run.history)} in the end")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--titan", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        check(str(pathlib.Path(options.titan).resolve()), pathlib.Path(temporary))
