"""Logs runs to MLflow's own server and reads them back with its client: metrics, parameters, names, outcomes, a resume,
a kill of the server.

    mlflow_check.py --titan build/release/bin/titan

It runs in a Python that has mlflow (tools/long_checks.sh makes one); the everyday tests use
tests/end_to_end/mlflow_server.py.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from mlflow.tracking import MlflowClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 300  # seconds until the server must have started


class Server:
    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url, self.folder, self.process = f"http://127.0.0.1:{self.port}", folder, None

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1",
             "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db", "--artifacts-destination", f"{self.folder}/artifacts"],
            stdout=open(self.folder / "server.log", "a"), stderr=subprocess.STDOUT, start_new_session=True)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(self.url + "/health", timeout=5).read()
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end, (self.folder / "server.log").read_text()
                time.sleep(0.2)

    def stop(self):
        if self.process:
            os.killpg(self.process.pid, 15)
            self.process.wait()
            self.process = None


def train(titan, server, out, *flags):
    arguments = ["train", "--job.config_file", "train_configs/debug_model.toml", "--training.seq_len", "64", "--training.steps", "6",
                 "--metrics.log_freq", "1", "--metrics.loggers", "jsonl,mlflow", "--logger.mlflow.finish_timeout", "10min",
                 "--checkpoint.enable", "--checkpoint.interval", "2", "--job.dump_folder", out]
    return subprocess.Popen([titan, *map(str, arguments), *map(str, flags)], cwd=ROOT, text=True, stderr=subprocess.PIPE,
                            env={**os.environ, "MLFLOW_TRACKING_URI": server.url, "OMP_NUM_THREADS": "1"})


def finish(process):
    said = process.communicate()[1]
    assert process.returncode == 0, said
    return said


def points(client, run, key):
    return [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, key)]


def expect_numbers(client, run, out, first_values):
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for tag in {tag for line in lines for tag in line} - {"step", "wall_time"}:
        name = tag.replace("(%)", "_pct").replace("(", "_").replace(")", "")
        wanted = {line["step"]: line[tag] for line in lines if tag in line} | first_values.get(tag, {})
        found = points(client, run, name)
        assert sorted(found) == sorted(wanted.items()), f"{name}: {found} instead of {wanted}"
    return {tag: {line["step"]: line[tag] for line in lines if tag in line} for tag in set().union(*lines)}


def only_run(client, name):
    (run,) = client.search_runs([client.get_experiment_by_name(name).experiment_id])
    return run


def check(titan, folder):
    server = Server(folder)
    client = MlflowClient(server.url)
    server.start()
    try:
        named = ["--logger.mlflow.experiment_name", "one", "--logger.mlflow.run_name", "first"]
        finish(train(titan, server, folder / "one", *named))
        run = only_run(client, "one")
        assert (run.info.run_name, run.info.status) == ("first", "FINISHED"), run.info
        assert run.data.params["training.seq_len"] == "64" and len(run.data.params) > 100, len(run.data.params)
        assert run.data.tags["mlflow.note.content"], run.data.tags
        first = expect_numbers(client, run, folder / "one", {})
        print(f"{len(run.data.metrics)} metrics and {len(run.data.params)} parameters arrived")

        finish(train(titan, server, folder / "one", *named, "--checkpoint.load_step", "4", "--training.steps", "8"))
        run = only_run(client, "one")
        assert run.info.status == "FINISHED"
        expect_numbers(client, run, folder / "one", first)
        print("a resumed run went on without doubled points")

        server.stop()  # no server is running when the run starts
        later = train(titan, server, folder / "two", "--logger.mlflow.experiment_name", "two")
        for line in later.stderr:
            if "training continues" in line:
                break
        server.start()
        finish(later)
        run = only_run(client, "two")
        assert run.info.status == "FINISHED"
        expect_numbers(client, run, folder / "two", {})
        print("a server that came late got everything")

        failing = train(titan, server, folder / "three", "--logger.mlflow.experiment_name", "three", "--training.steps", "100000")
        for line in failing.stderr:
            if "mlflow: run" in line:
                break
        failing.terminate()
        failing.communicate()
        run = only_run(client, "three")
        assert run.info.status == "KILLED", run.info
        print("a run that was stopped is shown as killed")
    finally:
        server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--titan", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(str(pathlib.Path(options.titan).resolve()), pathlib.Path(folder))
