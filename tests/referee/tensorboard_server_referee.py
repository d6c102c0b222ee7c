"""Shows the tensorboard logger's files with TensorBoard's server, with each of its two loaders.

    tensorboard_server_referee.py --probe <tensorboard_probe> [--screenshots FOLDER [--browser chromium]]

Three runs: one that was stopped and resumed and then finished, one that failed, one that still runs. The server's
answers to its own pages are compared with the logged data: scalars without repeated steps, histograms, texts, the
sessions of HParams with their hyperparameters and outcomes, and the charts of custom scalars. With --screenshots a
browser also saves pictures of its pages, for inspection.
"""

import argparse
import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

HISTOGRAM = {"weights/layers.0": {"edges": [-1.5, -0.5, 0.25, 2.0], "counts": [3, 0, 7]},
             "weights/ein Maß": {"edges": [0, 1], "counts": [1]}}
STATUS = {"finished": "STATUS_SUCCESS", "failed": "STATUS_FAILURE", "stopped": "STATUS_UNKNOWN", None: "STATUS_UNKNOWN"}


def configuration(lr, steps):
    return {"job": {"description": "a|b <i>`x`</i> *y*", "dump_folder": "./outputs"}, "model": {"flavor": "debugmodel"},
            "optimizer": {"name": "AdamW", "lr": lr, "groups": {"norms": {"weight_decay": 0}}},
            "training": {"steps": steps, "compile": True, "list": [1, 2], "nothing": None}}


def log_of(steps, offset=0.0):
    return [{"step": step, "scalars": {"loss_metrics/global_avg_loss": 8 / step + offset, "loss_metrics/global_max_loss": 9 / step + offset,
                                       "grad_norm": 1.5, "lr": 1e-3, "throughput(tps)": 1000 + step, "mfu(%)": 40, "goodput(%)": 90,
                                       "memory/max_active(GiB)": 1.5, "time_metrics/end_to_end(s)": 0.1, "time_metrics/forward(s)": 0.03},
             "histograms": HISTOGRAM} for step in steps]


def write_runs(probe, root):
    now = time.time()
    runs = {"resumed": [{"resumed_step": 0, "start_time": now, "config": configuration(1e-3, 20), "log": log_of(range(1, 16), 0.5),
                         "outcome": "stopped"},
                        {"resumed_step": 10, "start_time": now + 60, "config": configuration(2e-3, 20), "log": log_of(range(11, 21)),
                         "outcome": "finished"}],
            "failed": [{"resumed_step": 0, "start_time": now, "config": configuration(3e-3, 20), "log": log_of(range(1, 6)),
                        "outcome": "failed"}],
            "running": [{"resumed_step": 0, "start_time": now, "config": configuration(4e-3, 20), "log": log_of(range(1, 8))}]}
    for name, sessions in runs.items():
        subprocess.run([probe, str(root / name)], input=json.dumps(sessions), text=True, check=True)
    return runs


class Server:
    def __init__(self, root, fast):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", str(root), "--port", "0", "--host", "127.0.0.1",
             "--reload_interval", "1", f"--load_fast={'true' if fast else 'false'}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if found := re.search(r"(http://[\w.]+:\d+)/", line):
                self.address = found.group(1)
                return
        raise AssertionError(f"TensorBoard did not start: {self.said}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()

    def ask(self, path, body=None, **query):
        url = f"{self.address}/data/{path}" + ("?" + urllib.parse.urlencode(query) if query else "")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=600) as answer:
            return json.loads(answer.read() or "null")

    def wait_for(self, is_so, what):
        """Files are read in the background: polls until they are read."""
        deadline = time.monotonic() + 600
        while True:
            try:
                if is_so():
                    return
            except urllib.error.HTTPError:  # a plugin without data so far
                pass
            assert time.monotonic() < deadline, f"TensorBoard never showed {what}"
            time.sleep(0.1)


def expected_scalars(sessions):
    points = {}
    for session in sessions:
        points = {step: value for step, value in points.items() if step <= session["resumed_step"]}
        for entry in session["log"]:
            points[entry["step"]] = entry["scalars"]["loss_metrics/global_avg_loss"]
    return points


def check(server, runs, names):
    by_name = {path.split("/")[0]: path for path in names}
    assert sorted(by_name) == sorted(runs), names

    for name, sessions in runs.items():
        run = by_name[name]
        points = server.ask("plugin/scalars/scalars", run=run, tag="loss_metrics/global_avg_loss")
        wanted = expected_scalars(sessions)
        assert [step for _, step, _ in points] == sorted(wanted), (name, points)
        assert all(abs(value - wanted[step]) < 1e-6 for _, step, value in points), (name, points)

        for tag, content in HISTOGRAM.items():
            shown = server.ask("plugin/histograms/histograms", run=run, tag=tag)
            assert [step for _, step, _ in shown] == sorted(wanted), (name, tag, shown)
            buckets = [[left, right, count] for left, right, count in
                       zip(content["edges"], content["edges"][1:], content["counts"])]
            assert all(found == buckets for _, _, found in shown), (name, tag, shown)

        tags = server.ask("plugin/text/tags")[run]
        assert set(tags) == {"config", "config/job", "config/model", "config/optimizer", "config/training"}, tags
        text = server.ask("plugin/text/text", run=run, tag="config/job")[-1]["text"]
        cells = [html.unescape(cell) for cell in re.findall(r"<td>([^<]*)</td>", text)]
        assert cells == ["description", '"a|b <i>`x`</i> *y*"', "dump_folder", '"./outputs"'], text
        text = server.ask("plugin/text/text", run=run, tag="config")[-1]["text"]
        assert "debugmodel" in text, text

    request = {"allowedStatuses": sorted(set(STATUS.values())), "colParams": [], "sliceSize": 100, "startIndex": 0}
    groups = server.ask("plugin/hparams/session_groups", body=request)["sessionGroups"]
    shown = {session["name"].split("/")[0]: (session, group["hparams"]) for group in groups for session in group["sessions"]}
    assert sorted(shown) == sorted(runs), groups
    for name, sessions in runs.items():
        session, hparams = shown[name]
        assert session["status"] == STATUS[sessions[-1].get("outcome")], (name, session)
        wanted = {"model.flavor": "debugmodel", "optimizer.name": "AdamW", "optimizer.lr": sessions[-1]["config"]["optimizer"]["lr"],
                  "optimizer.groups.norms.weight_decay": 0, "training.steps": 20, "training.compile": True}
        assert {key: value for key, value in hparams.items() if value != ""} == wanted, (name, hparams)
        metrics = {value["name"]["tag"]: value for value in session["metricValues"]}
        last = sessions[-1]["log"][-1]
        loss = metrics["loss_metrics/global_avg_loss"]
        assert (loss["trainingStep"], round(loss["value"], 4)) == \
            (last["step"], round(last["scalars"]["loss_metrics/global_avg_loss"], 4)), (name, loss)

    layout = server.ask("plugin/custom_scalars/layout")
    (category,) = layout["category"]
    for chart in category["chart"]:
        for pattern in chart["multiline"]["tag"]:
            answer = server.ask("plugin/custom_scalars/scalars", run=by_name["resumed"], tag=pattern)
            assert answer["regex_valid"], pattern
            chart.setdefault("shown", set()).update(answer["tag_to_events"])
    everything = set(runs["resumed"][-1]["log"][0]["scalars"])
    assert set.union(*(chart["shown"] for chart in category["chart"])) == everything, layout
    return sum(len(expected_scalars(sessions)) for sessions in runs.values())


def draw(server, browser, folder):
    """Takes pictures of the dashboards; a page is complete after some seconds of its virtual
    clock."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"scalars": "#timeseries", "text": "#text", "hparams": "#hparams", "histograms": "#histograms", "custom_scalars": "#custom_scalars"}
    for name, anchor in pages.items():
        subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1500,1000",
                        "--virtual-time-budget=20000", f"--screenshot={folder / (name + '.png')}", f"{server.address}/?darkMode=false{anchor}"],
                       check=True, capture_output=True, timeout=600)
        print(f"drew {folder / (name + '.png')}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", required=True)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--browser", default="chromium")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        runs = write_runs(arguments.probe, root)
        for fast in (True, False):
            with Server(root, fast) as server:
                server.wait_for(lambda: len(server.ask("runs")) == len(runs), "all runs")
                names = server.ask("runs")
                for name in names:  # the slow loader shows runs before it has read them completely
                    last = runs[name.split("/")[0]][-1]["log"][-1]["step"]
                    server.wait_for(lambda: server.ask("plugin/scalars/scalars", run=name, tag="lr")[-1][1] == last, f"all of {name}")
                count = check(server, runs, names)
                print(f"{'fast' if fast else 'slow'} loader: {count} points, histograms, texts, sessions and charts are as logged")
                if fast and arguments.screenshots:
                    draw(server, arguments.browser, arguments.screenshots)


if __name__ == "__main__":
    main()
