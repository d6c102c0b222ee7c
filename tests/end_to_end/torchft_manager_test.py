"""torchft's Python Manager, which trains a toy model, at the lighthouse of two replica groups: it joins them, leaves and is killed. The
groups train as without it. It commits no step while they are there."""

import importlib.util
import json
import subprocess
import sys
import unittest

from harness import ROOT, environment, main
from replica_groups import ENDLESS, Replicas, recorded

MISSING = "torchft's Python package lacks torch or opentelemetry; see the first lines of requirements-torchft.txt"


class Toy:
    """A process of torchft_member.py. It imports torch before go(), so that it joins at once then."""

    def __init__(self, case, name):
        self.case, self.out, self.log = case, case.folder / f"toy {name}.jsonl", case.folder / f"toy {name}.log"
        with open(self.out, "w") as out, open(self.log, "w") as log:
            self.process = subprocess.Popen([sys.executable, ROOT / "tests/end_to_end/torchft_member.py", case.lighthouse.url], stdin=subprocess.PIPE,
                                            stdout=out, stderr=log, text=True, env=environment())
        case.addCleanup(self.end)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def go(self):
        self.wait_for("is_ready")
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def lines(self):
        return [json.loads(line) for line in self.out.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def wait_for(self, key, value=True, *groups, after=0):
        """Until one of its lines, after the first `after` ones, has the value. The groups must run meanwhile."""
        def is_there():
            self.case.assertIsNone(self.process.poll(), f"the toy has ended:\n{self.log.read_text()[-4000:]}")
            return any(line.get(key) == value for line in self.lines()[after:])
        self.case.wait_until(is_there, *groups)


class TorchftManagerTest(Replicas):
    LIGHTHOUSE = {"min_replicas": 1, "join_timeout_ms": 10000, "heartbeat_timeout_ms": 5000}  # a busy machine does not make a group look dead

    @classmethod
    def setUpClass(cls):
        if not all(importlib.util.find_spec(name) for name in ("torchft", "torch", "opentelemetry")):
            raise unittest.SkipTest(MISSING)

    def two_groups(self, steps):
        """They train only together, so that two runs add in the same order."""
        return [self.start(replica, "--fault_tolerance.min_replica_size=2", steps=steps) for replica in range(2)]

    def assert_nothing_commits(self, toy):
        """In no quorum with the groups."""
        mixed = [line for line in toy.lines() if line.get("members", 0) > 1]
        self.assertEqual([line for line in mixed if line["commits"]], [])
        self.assertIn("got exception in pg configure: wait timeout", toy.log.read_text())

    def test_it_joins_leaves_and_is_killed(self):
        leaves, is_killed, stays = (Toy(self, name) for name in ("leaves", "is killed", "stays"))
        leaves.go()
        leaves.wait_for("step", 20)  # alone; its step stays ahead of the groups'
        groups = self.two_groups(ENDLESS)
        leaves.wait_for("members", 3, *groups)
        self.wait_for_step(3, *groups)
        leaves.process.terminate()
        self.wait_until(lambda: leaves.process.poll() is not None, *groups)
        self.assertEqual((leaves.process.returncode, leaves.lines()[-1]), (0, {"is_shut_down": True}))
        self.wait_for_step(groups[0].step() + 3, *groups)

        is_killed.go()
        is_killed.wait_for("members", 3, *groups)
        self.wait_for_step(groups[0].step() + 2, *groups)
        is_killed.end()
        self.wait_for_step(groups[0].step() + 3, *groups)

        stays.go()
        stays.wait_for("members", 3, *groups)
        self.wait_for_step(groups[0].step() + 2, *groups)
        self.stop(*groups)
        stays.wait_for("commits", True, after=len(stays.lines()))  # alone, its steps succeed
        stays.end()

        for toy in (leaves, is_killed, stays):
            self.assert_nothing_commits(toy)
        for group in groups:
            self.assertEqual(group.said().count("ignores 'toy:"), 3, group.said())
            self.assertEqual(group.said().count("trains with 2 groups"), 1)
            self.assertEqual([event["step"] for event in group.events() if event["what"] in ("commit", "abort")], list(range(1, group.step() + 1)))
        self.assert_as_two_groups_alone(groups)

    def assert_as_two_groups_alone(self, groups):
        found = [recorded(group.folder) for group in groups]
        steps, self.out = groups[0].step(), self.folder / "alone"
        self.finish(*self.two_groups(steps))
        for group, (losses, tokens) in zip(groups, found, strict=True):
            alone = recorded(self.out / f"replica_{group.replica}")
            self.assertEqual((losses, tokens), alone)
            self.assertEqual(sorted(losses), list(range(1, steps + 1)))


if __name__ == "__main__":
    main()
