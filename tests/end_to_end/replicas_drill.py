"""Hundreds of faults at drawn moments over three replica groups, one after the other: killed and started again, stopped and
continued, cut off from the network for a while. Losses, tokens and weights must be those of one group that nobody disturbs.

  replicas_drill.py --complete --write docs/results/fault_tolerance.md      200 kills, 50 stops, 20 cuts
  replicas_drill.py --kills 20 --stops 5 --cuts 2 [--seed N] [--ranks 2]

Cuts need root, iproute2 and nftables. TITAN_PROGRAM and the other settings of harness.py name the build; default: build/release."""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for name, place in {"TITAN_SOURCE_DIR": "", "TITAN_PROGRAM": "build/release/bin/titan", "TITAN_WORK": "build/release/tests/work"}.items():
    os.environ.setdefault(name, str(ROOT / place))

import lighthouse
import replica_results
from drill_network import ThreeHosts
from harness import HANG
from replica_groups import TOLERANCE, Replicas, command_line, last_event, recorded
from replica_history import divergences, standstill, starts_of, steps_lost, summary

NUM_GROUPS = 3
MOMENTS = ("quorum", "forward", "backward", "judge", "optimizer", "heal", "save")
# at most so many microseconds after the moment, which then also meets what follows it
DELAYS = {"quorum": 8000, "forward": 5000, "backward": 10000, "judge": 3000, "optimizer": 3000, "heal": 10000, "save": 20000}
INTERVAL = 5  # steps between checkpoints
STEPS = 1_000_000
EXIT_REQUEUE = 75
HEARTBEAT_MS, COLLECTIVE_MS = 1000, 2000
TWO_AT_ONCE = 0.1  # of the kills strike a second group too
RECOVERY = 90  # seconds; far more than any wait of the settings


class Drill(Replicas):
    LIGHTHOUSE = {"min_replicas": 1, "join_timeout_ms": 3000, "heartbeat_timeout_ms": HEARTBEAT_MS}
    plan = None  # of the command line

    def runTest(self):
        self.draw = random.Random(self.plan.seed)
        if self.plan.keep:
            self.addCleanup(shutil.copytree, self.folder, self.plan.keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("checkpoint", "timeline"))
        self.hosts = None
        if self.plan.cuts:
            self.lighthouse.kill()
            self.hosts = ThreeHosts(self, NUM_GROUPS)
            self.lighthouse = lighthouse.Lighthouse(**self.LIGHTHOUSE, host=self.hosts.hub, within=self.hosts.inside_hub())
            self.addCleanup(self.lighthouse.__exit__)
        kinds = ["kill"] * self.plan.kills + ["stop"] * self.plan.stops + ["cut"] * self.plan.cuts
        self.draw.shuffle(kinds)
        moments = [MOMENTS[i % len(MOMENTS)] for i in range(len(kinds))]
        self.draw.shuffle(moments)
        self.running = [self.start_group(replica) for replica in range(NUM_GROUPS)]
        self.together(0)
        began, self.faults = time.monotonic(), []
        for kind, moment in zip(kinds, moments):
            if time.monotonic() - began > 60 * self.plan.minutes:
                break
            self.one_fault(kind, moment)
        seconds = time.monotonic() - began
        time.sleep(1)
        for group in self.running:
            group.process.terminate()
        for group in self.running:  # also those that do not write the checkpoints
            self.assertEqual(group.process.wait(HANG), EXIT_REQUEUE, group.said())
        self.judge(seconds)

    def start_group(self, replica):
        where = self.hosts.options(replica) if self.hosts else {}
        arguments = [*where.pop("arguments", ()), "--checkpoint.enable", f"--checkpoint.interval={INTERVAL}", "--checkpoint.keep_latest_k=2",
                     "--checkpoint.async_mode=async", f"--fault_tolerance.process_group_timeout_ms={COLLECTIVE_MS}", "--optimizer.lr=1e-4",
                     "--comm.train_timeout_seconds=30"]
        return self.start(replica, *arguments, steps=STEPS, groups=NUM_GROUPS, ranks=self.plan.ranks, **where)

    def together(self, since):
        """All groups have committed a step together after `since`."""
        limit = time.monotonic() + RECOVERY

        def is_together():
            last = [last_event(group.folder) for group in self.running]
            return all(e and e["what"] == "commit" and e["groups"] == NUM_GROUPS and e["time"] > since for e in last)
        while not is_together():
            for group in self.running:
                self.assertTrue(group.is_running(), f"replica {group.replica} has ended:\n{group.said()[-4000:]}")
            self.assertLess(time.monotonic(), limit, "the groups do not train together again:\n" +
                            "\n-----\n".join(group.said()[-3000:] for group in self.running))
            time.sleep(0.02)

    def one_fault(self, kind, moment):
        victim = self.draw.randrange(NUM_GROUPS)
        begin = time.monotonic()
        if kind == "cut":
            delay = self.draw.choice((0.3, 1.5, 4))
            moment = self.draw.choice(("from all", "from the lighthouse", "from a group"))
            self.hosts.cut(victim, {"from all": "10.78.0.0/24", "from the lighthouse": self.hosts.hub,
                                    "from a group": self.hosts.address((victim + 1) % NUM_GROUPS)}[moment])
            time.sleep(delay)
            self.hosts.join(victim)
        else:
            begin = (self.strike_in_heal if moment == "heal" else self.strike_in_step)(kind, moment, victim)
        over = time.monotonic()
        self.together(over)
        end = time.monotonic()
        self.faults.append({"kind": kind, "moment": moment, "victim": victim, "begin": begin, "end": end})
        print(f"{len(self.faults):3} {kind} {moment:19} replica {victim}  step {self.running[0].step()}  together after {end - begin:.2f} s", flush=True)

    def strike_in_step(self, kind, moment, victim):
        group, rank = self.running[victim], self.draw.randrange(self.plan.ranks)
        number = signal.SIGSTOP if kind == "stop" else signal.SIGKILL
        group.strike(moment, number, self.draw.randrange(DELAYS[moment]), INTERVAL if moment == "save" else 1, rank)
        if kind == "kill":
            both = [victim]
            if self.draw.random() < TWO_AT_ONCE:
                both.append((victim + 1) % NUM_GROUPS)
                self.running[both[1]].strike(moment, number, self.draw.randrange(DELAYS[moment]), INTERVAL if moment == "save" else 1, rank)
                time.sleep(0.05)
                self.running[both[1]].process.kill()  # it may wait for the first one instead of coming to the moment
            self.wait_until(lambda: not any(self.running[one].is_running() for one in both))
            for one in both:
                self.start_again(one)
            return last_event(group.folder, b'"strike"', rank)["time"]
        stopped = []
        self.wait_until(lambda: stopped.extend(stopped_processes(self.out / f"replica_{victim}")) or stopped, *self.running)
        time.sleep(self.draw.choice((0.3, 1.5, 4)))
        for pid in stopped:
            subprocess.run(["kill", "-CONT", pid], check=True)
        return last_event(group.folder, b'"strike"', rank)["time"]

    def start_again(self, victim):
        time.sleep(self.draw.random())
        for order in (self.out / f"replica_{victim}").glob("strike.*"):
            order.unlink()
        self.running[victim] = self.start_group(victim)
        return self.running[victim]

    def strike_in_heal(self, kind, moment, victim):
        """The victim is killed; when it has come back and takes over the state, it, its source or the third group is struck."""
        self.running[victim].process.kill()
        self.running[victim].process.wait()
        healer = self.start_again(victim)
        self.wait_until(lambda: "over from replica_" in healer.said(), healer)
        struck = self.draw.randrange(NUM_GROUPS)
        time.sleep(self.draw.randrange(DELAYS[moment]) / 1e6)
        begin = time.monotonic()
        if kind == "stop":
            self.running[struck].process.send_signal(signal.SIGSTOP)
            time.sleep(self.draw.choice((0.3, 1.5, 4)))
            self.running[struck].process.send_signal(signal.SIGCONT)
        else:
            self.running[struck].kill()
            self.start_again(struck)
        return begin

    def judge(self, seconds):
        folders = [self.out / f"replica_{replica}" for replica in range(NUM_GROUPS)]
        starts = {(replica, pid): events for replica, folder in enumerate(folders) for pid, events in starts_of(folder).items()}
        for fault in self.faults:
            commits = sorted(e["time"] for (replica, _), events in starts.items() if replica != fault["victim"] for e in events if e["what"] == "commit")
            others = {key: events for key, events in starts.items() if key[0] != fault["victim"]}
            fault["standstill"] = standstill(commits, fault["begin"], fault["end"])
            fault["lost"] = steps_lost(others, fault["begin"], fault["end"])
        takeovers = {}
        for group in self.groups:
            for line in group.said().splitlines():
                if " takes step " in line:
                    step = int(line.split(" takes step ")[1].split()[0])
                    takeovers.setdefault((group.replica, group.process.pid), set()).add(step)
        last = max(group.step() for group in self.running)
        problems = divergences(starts, takeovers)
        steps = [b["time"] - a["time"] for events in starts.values() for a, b in zip(events, events[1:]) if a["what"] == b["what"] == "commit"]
        step_ms = 1000 * statistics.median(steps)
        print(f"{len(self.faults)} faults in {seconds:.0f} s, {last} steps of {step_ms:.0f} ms; now the undisturbed run", flush=True)
        expected = self.undisturbed(last, "--optimizer.lr=1e-4")
        self.assert_as_undisturbed(expected, *range(NUM_GROUPS))
        trained = set().union(*(recorded(folder)[1] for folder in folders))
        self.assertEqual(sorted(trained), list(range(1, last + 1)), "every step has been trained")
        self.assertEqual(problems, [])
        self.assert_nothing_is_left()
        worst = max(abs(loss - expected[0][step]) for folder in folders for step, loss in recorded(folder)[0].items())
        result = {"seed": self.plan.seed, "ranks": self.plan.ranks, "network": bool(self.hosts), "steps": last, "step_ms": step_ms, "seconds": seconds,
                  "worst": worst, "rows": summary(self.faults)}
        print(json.dumps(result))
        for row in result["rows"]:
            print("{:5} {:4} faults, standstill median {:.2f} s, at most {:.2f} s; lost steps {:.2f} per fault, at most {}".format(*row))
        with open(self.plan.results, "a") as file:
            file.write(json.dumps(result) + "\n")


def stopped_processes(folder):
    """Processes of a group that SIGSTOP holds."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if path.read_text().rsplit(")", 1)[1].split()[0] == "T" and str(folder.parent) in command_line(path.parent.name):
                found.append(path.parent.name)
        except OSError:
            pass
    return found


# kills, stops, cuts, ranks of each group
COMPLETE = ((110, 25, 0, 1), (70, 20, 20, 1), (20, 5, 0, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kills", "stops", "cuts"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--complete", action="store_true", help="all parts, one after the other")
    parser.add_argument("--minutes", type=float, default=60, help="of a part, after which no further fault is drawn")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--ranks", type=int, default=1, help="of each group, under FSDP")
    parser.add_argument("--results", type=pathlib.Path, help="file of JSON lines to which the results are added")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE", help="write the results as a page")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="copy logs and events there, also after a failure")
    plan = parser.parse_args()
    if not lighthouse.extension():
        sys.exit(lighthouse.MISSING)
    print(f"seed {plan.seed}, loss within {TOLERANCE:g}", flush=True)
    parts = COMPLETE if plan.complete else [(plan.kills, plan.stops, plan.cuts, plan.ranks)]
    with tempfile.TemporaryDirectory() as folder:
        plan.results = plan.results or pathlib.Path(folder) / "results.jsonl"
        for plan.kills, plan.stops, plan.cuts, plan.ranks in parts:
            Drill.plan = plan
            run = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite([Drill()]))
            if not run.wasSuccessful() or run.skipped:
                sys.exit(1)
        if plan.write and plan.results.exists():
            replica_results.write(plan.write, plan.results, INTERVAL, HEARTBEAT_MS, COLLECTIVE_MS)
    print(f"passed {sum(sum(part[:3]) for part in parts)} faults")


if __name__ == "__main__":
    main()
