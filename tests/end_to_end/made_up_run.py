#!/usr/bin/env python3
"""Writes folders of made-up runs in the formats of a real run. Tests of titan report and titan top use it; the faults in
such a run are known.

    tests/end_to_end/made_up_run.py FOLDER [--ranks 4] [--steps 200] [--sessions killed,failed,finished] [--seed 1]
"""

import argparse
import json
import math
import pathlib
import random

PHASES = ["data", "forward", "backward", "communication", "optimizer", "checkpoint", "validation", "other"]
START = 1_790_000_000.0  # seconds since 1970, of the first session
CONFIG = {"job": {"dump_folder": "./outputs", "description": "made up"}, "model": {"name": "llama3", "flavor": "debugmodel"},
          "optimizer": {"name": "AdamW", "lr": 8e-4}, "training": {"steps": 200, "seq_len": 2048, "local_batch_size": 2},
          "parallelism": {"pipeline_parallel_degree": 4}, "checkpoint": {"enable": True, "interval": 50}}


def one_f_one_b(rank, ranks, microbatches):
    """The actions of a rank under 1F1B, one stage per rank."""
    warmup = min(ranks - rank - 1, microbatches)
    actions = [f"{rank}F{m}" for m in range(warmup)]
    for m in range(microbatches - warmup):
        actions += [f"{rank}F{warmup + m}", f"{rank}B{m}"]
    return actions + [f"{rank}B{m}" for m in range(microbatches - warmup, microbatches)]


def measured(plans, draw, forward=0.02, backward=0.04):
    """Spans of each rank's actions if each starts as soon as it can; waiting for another rank is part of the span."""
    ranks, ends, spans = len(plans), {}, [[] for _ in plans]
    free, places = [0.0] * ranks, [0] * ranks
    while any(place < len(plan) for place, plan in zip(places, plans)):
        for rank, plan in enumerate(plans):
            if places[rank] == len(plan):
                continue
            action = plan[places[rank]]
            kind = "F" if "F" in action else "B"
            stage, microbatch = map(int, action.split(kind))
            needs = (stage - 1, "F", microbatch) if kind == "F" else (stage + 1, "B", microbatch)
            if 0 <= needs[0] < ranks and needs not in ends:
                continue
            ready = max(free[rank], ends.get(needs, 0.0))
            took = (forward if kind == "F" else backward) * draw.uniform(0.9, 1.2)
            words = "forward" if kind == "F" else "backward"
            spans[rank].append({"phase": words, "name": f"{words} of stage {stage}, microbatch {microbatch} ({action})", "begin": free[rank],
                                "end": ready + took, "waited": ready - free[rank]})
            free[rank] = ends[stage, kind, microbatch] = ready + took
            places[rank] += 1
    last = max(free)
    for rank in range(ranks):
        spans[rank].append({"phase": "communication", "name": "gradients", "begin": free[rank], "end": last + 0.01, "waited": 0.0})
        spans[rank].append({"phase": "optimizer", "name": "update", "begin": last + 0.01, "end": last + 0.02, "waited": 0.0})
    return spans, last + 0.02


class MadeUpRun:
    """Writes one run, session by session, with a simulated clock."""

    def __init__(self, folder, ranks=4, microbatches=8, log_freq=5, steps=200, seed=1, config=None, pipeline=True):
        self.folder, self.ranks, self.log_freq, self.steps = pathlib.Path(folder), ranks, log_freq, steps
        self.draw, self.now, self.config = random.Random(seed), START, config or CONFIG
        self.plans = [one_f_one_b(rank, ranks, microbatches) for rank in range(ranks)] if pipeline else None
        self.microbatches, self.metrics, self.history = microbatches, {}, []
        for name in ("status", "timeline"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        toml = "".join(f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()) + "\n"
                       for section, keys in self.config.items())
        (self.folder / "config.toml").write_text(toml)

    def event(self, name, **members):
        self.history.append({"event": name, "time": round(self.now, 6), **members})
        with open(self.folder / "history.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(self.history[-1]) + "\n")

    def session(self, resumed, until, outcome, *, setup=20.0, checkpoint=50, validate=100, hang=0.0, error="", pause=60.0):
        """Trains from `resumed` to `until`. outcome: finished, stopped, failed or killed."""
        self.event("start", resumed_step=resumed, steps=self.steps, world_size=self.ranks, host="node-1", pid=4711, titan="0.9.0",
                   torch="2.11.0", device="cpu", parameters=6_139_136, tokens_per_step=16384, config=self.config)
        for rank in range(self.ranks):
            self.append(f"timeline/rank_{rank}.jsonl", {"plan": self.plans and {
                "schedule": "1F1B", "rank": rank, "num_ranks": self.ranks, "num_stages": self.ranks,
                "num_microbatches": self.microbatches, "actions": self.plans[rank]}})
        self.now += setup
        seconds, first = dict.fromkeys(PHASES, 0.0), resumed + 1
        for step in range(resumed + 1, until + 1):
            self.step(step, seconds, checkpoint, validate)
            if step == resumed + 1:
                self.event("first_step", step=step)
            if step == 1 or step % self.log_freq == 0:
                self.event("steps", **{"from": first, "to": step}, seconds={k: round(v, 6) for k, v in seconds.items()})
                seconds, first = dict.fromkeys(PHASES, 0.0), step + 1
        self.now += hang
        if outcome != "killed":
            self.now += 0.5
            self.event("end", step=until, outcome=outcome, error=error)
        self.status(until, "ended" if outcome != "killed" else "running")
        self.now += pause
        return self

    def step(self, step, seconds, checkpoint, validate):
        spans, length = measured(self.plans or [[f"0F{m}", f"0B{m}"] for m in range(1)] * 1, self.draw)
        begin = self.now
        for span in spans[0]:
            seconds[span["phase"]] += span["end"] - span["begin"] - span["waited"]
            seconds["communication"] += span["waited"]
        seconds["data"] += 0.005
        seconds["other"] += 0.001
        self.now += length + 0.006
        if step % self.log_freq == 0 or step == 1:
            for rank in range(self.ranks):
                self.append(f"timeline/rank_{rank}.jsonl", {"step": step, "begin": begin,
                                                            "spans": spans[rank if self.plans else 0]})
            self.log(step, length)
        if validate and step % validate == 0:
            self.now += 2.0
            seconds["validation"] += 2.0
            self.event("validation", step=step, seconds=2.0)
        if checkpoint and step % checkpoint == 0:
            self.now += 0.5
            seconds["checkpoint"] += 0.5
            self.event("checkpoint", step=step, held=0.5)
            self.manifest(step)

    def log(self, step, length):
        loss = 2.5 + 8 * math.exp(-step / 60) + self.draw.gauss(0, 0.05)
        line = {"step": step, "wall_time": self.now, "loss_metrics/global_avg_loss": loss, "loss_metrics/global_max_loss": loss + 0.2,
                "grad_norm": 1 + self.draw.random(), "lr": 8e-4 * min(1, step / 20), "throughput(tps)": 16384 / length / self.ranks,
                "memory/max_reserved(GiB)": 3.5 + 0.1 * self.draw.random(), "n_tokens_seen": step * 16384}
        self.metrics = {s: l for s, l in self.metrics.items() if s < step}
        self.metrics[step] = line
        (self.folder / "metrics.jsonl").write_text("".join(json.dumps(l) + "\n" for l in self.metrics.values()))

    def manifest(self, step):
        path = self.folder / f"checkpoint/step-{step}"
        path.mkdir(parents=True, exist_ok=True)
        layout = {"pp": self.ranks, "dp_replicate": 1, "dp_shard": 1, "cp": 1, "tp": 1}
        (path / "manifest.json").write_text(json.dumps({
            "format": "titan checkpoint", "version": 1, "contents": "training", "step": step, "tokens_seen": step * 16384, "lr_step": step,
            "seed": 42, "model": "llama3", "flavor": "debugmodel", "layout": layout, "files": [], "config": {},
            "program": "titan 0.9.0", "time": self.now}))

    def status(self, step, state, **changes):
        for rank in range(self.ranks):
            self.rank_status(rank, step=step, state=state, **changes)

    def rank_status(self, rank, **changes):
        status = {"rank": rank, "world_size": self.ranks, "host": f"node-{rank // 8}", "pid": 4711 + rank, "time": self.now,
                  "state": "running", "step": 1, "steps": self.steps, "phase": "forward", "doing": f"forward of microbatch {rank}",
                  "waiting_seconds": 0.0, "tokens_per_second": 41234.5, "step_seconds": 0.397, "loss": 2.5,
                  "memory_bytes": (3 << 30) + rank * (64 << 20), "memory_total": 16 << 30,
                  "seconds": {"data": 0.005, "forward": 0.16, "backward": 0.2, "communication": 0.02 + 0.001 * rank,
                              "optimizer": 0.01, "checkpoint": 0.0, "validation": 0.0, "other": 0.002}}
        status.update(changes)
        (self.folder / f"status/rank_{rank}.json").write_text(json.dumps(status).ljust(1023) + "\n")

    def append(self, name, line):
        with open(self.folder / name, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--sessions", default="killed,failed,finished")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lr", type=float, default=8e-4)
    arguments = parser.parse_args()
    config = json.loads(json.dumps(CONFIG))
    config["optimizer"]["lr"] = arguments.lr
    run = MadeUpRun(arguments.folder, ranks=arguments.ranks, steps=arguments.steps, seed=arguments.seed, config=config,
                    pipeline=arguments.ranks > 1)
    outcomes, done = arguments.sessions.split(","), 0
    for number, outcome in enumerate(outcomes, 1):
        until = arguments.steps * number // len(outcomes)
        run.session(done, until, outcome, hang=40.0 if outcome == "failed" else 0.0,
                    error="rank 2 gave no sign of life for 30 s" if outcome == "failed" else "")
        done = until // 50 * 50


if __name__ == "__main__":
    main()
