"""Reads the tensorboard logger's files with TensorBoard's EventAccumulator.

    tensorboard_referee.py --probe <tensorboard_probe>

This script chooses tags, steps and values, has the probe log them, and compares everything that
TensorBoard reads with them: a fresh run, a resumed run that repeats steps, and a resumed run after
a record that a kill truncated.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile
import time

import numpy as np
from tensorboard.backend.event_processing import event_accumulator, event_file_loader

TAGS = ["loss_metrics/global_avg_loss", "loss_metrics/global_max_loss", "grad_norm",
        "throughput(tps)", "tflops", "mfu(%)", "time_metrics/end_to_end(s)",
        "memory/max_active(GiB)", "memory/max_active(%)", "memory/num_ooms", "n_tokens_seen", "lr",
        "validation_metrics/loss", "Verlust/größe"]
EDGES = [0.0, -0.0, 1.0, 1 / 3, 1e-45, 1e-46, 3.4028234e38, 3.4028235e38, 3.4028235677973366e38,
         3.5e38, -1e300, 5e-324, 16777217.0, float("inf"), float("-inf"), float("nan")]
CONFIG = {"job": {"description": "Größe \"x\" ```"},
          "training": {"steps": 30, "lr": 3e-4, "list": [1, "a", None]}}


def choose_log(rng, steps):
    log = []
    for step in steps:
        tags = [tag for tag in TAGS if rng.random() < 0.9] or TAGS[:1]
        log.append({"step": step, "scalars": {
            tag: (rng.choice(EDGES) if rng.random() < 0.3
                  else rng.gauss(0, 1) * 10 ** rng.randint(-8, 8))
            for tag in tags}})
    return log


def write(probe, folder, log, resumed_step):
    for_probe = [{"step": entry["step"], "scalars": {
        tag: value if np.isfinite(value) else str(value)
        for tag, value in entry["scalars"].items()}} for entry in log]
    runs = [{"resumed_step": resumed_step, "start_time": time.time(), "config": CONFIG,
             "log": for_probe, "outcome": "stopped"}]
    subprocess.run([probe, str(folder)], input=json.dumps(runs), text=True, check=True)


def read(folder):
    (run_folder,) = (folder / "tb").iterdir()
    accumulator = event_accumulator.EventAccumulator(
        str(run_folder), size_guidance={event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0})
    accumulator.Reload()
    return accumulator


def bits(value):
    with np.errstate(all="ignore"):
        value = np.float32(value)
    return "nan" if np.isnan(value) else value.tobytes()


def expect_equal(accumulator, log, start, config_steps):
    wanted = {}
    for entry in log:
        for tag, value in entry["scalars"].items():
            wanted.setdefault(tag, []).append((entry["step"], bits(value)))
    tags = accumulator.Tags()
    assert set(tags["scalars"]) == set(wanted), (tags["scalars"], sorted(wanted))
    for tag, points in wanted.items():
        events = accumulator.Scalars(tag)
        assert [(e.step, bits(e.value)) for e in events] == points, tag
        assert all(start - 1 <= e.wall_time <= time.time() + 1 for e in events), tag

    own = {"config", "config/job", "config/training", "custom_scalars__config__"}
    assert {tag for tag in tags["tensors"] if not tag.startswith("_hparams_/")} == own, tags["tensors"]
    metadata = accumulator.SummaryMetadata("config")
    assert metadata.plugin_data.plugin_name == "text"
    texts = accumulator.Tensors("config")
    assert [t.step for t in texts] == config_steps, texts
    for text in texts:
        (value,) = text.tensor_proto.string_val
        body = value.decode()
        assert body.startswith("```json\n") and body.endswith("\n```\n")
        assert json.loads(body[len("```json\n"):-len("\n```\n")]) == CONFIG
    return sum(map(len, wanted.values()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", required=True)
    probe = parser.parse_args().probe
    rng = random.Random(0)
    start = time.time()

    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        first = choose_log(rng, [1] + list(range(10, 201, 10)) + [201] + list(range(210, 301, 10)))
        write(probe, folder, first, 0)
        count = expect_equal(read(folder), first, start, [0])
        print(f"fresh run: {count} points equal in tag, step and fp32 bits")

        # the first run had 300 steps, but the checkpoint is of step 200
        second = choose_log(rng, list(range(210, 301, 10)) + [301] + list(range(310, 401, 10)))
        write(probe, folder, second, 200)
        kept = [entry for entry in first if entry["step"] <= 200]
        count = expect_equal(read(folder), kept + second, start, [0, 200])
        print(f"resumed run: {count} points, steps done again are replaced")

        # a kill truncates the last record of the latest file
        latest = max((folder / "tb").glob("*/events.out.tfevents.*.0"))
        whole = latest.read_bytes()
        latest.write_bytes(whole[:-rng.randint(1, 40)])
        third = choose_log(rng, range(310, 501, 10))
        write(probe, folder, third, 300)
        kept += [entry for entry in second if entry["step"] <= 300]
        count = expect_equal(read(folder), kept + third, start, [0, 200, 300])
        print(f"resumed after a truncated record: {count} points")

        files = sorted((folder / "tb").glob("*/events.out.tfevents.*"))
        assert sum(file.suffix == ".session" for file in files) == 1, files
        assert len(files) == 4, files
        for file in files:
            events = list(event_file_loader.RawEventFileLoader(str(file)).Load())
            assert len(events) >= 3, file  # version, start, end of a session


if __name__ == "__main__":
    main()
