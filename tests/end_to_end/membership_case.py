"""Stand-ins for rank 0 of replica groups, for the tests of the membership client."""

import json
import os
import pathlib
import subprocess
import threading
import time

from harness import HANG, TITAN, Case

BUILD = pathlib.Path(TITAN).parents[1]
PROBE = os.environ["TITAN_MEMBERSHIP_PROBE"]
AGENT = BUILD / "lib/titan/plugins/titan-replica"


def agents_of(identifier):
    """The processes of titan-replica for a group, also after it took another uuid."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"titan-replica") and f'"id":"{identifier.split(":")[0]}:'.encode() in words[1]:
            found.append(int(folder.name))
    return found


def wait_until(holds, what):
    deadline = time.monotonic() + HANG
    while not holds():
        assert time.monotonic() < deadline, f"waited for {HANG} s until {what}"
        time.sleep(0.01)


class Group:
    """Rank 0 of a replica group."""

    def __init__(self, url, identifier, log, connect_timeout_ms=600000):
        self.id = identifier
        self.is_open = False  # whether a request waits for its answer
        self.log = log.open("w+")  # a file, which no reader has to empty
        self.process = subprocess.Popen([PROBE, "join", url, identifier, AGENT, str(connect_timeout_ms)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)

    def ask(self, step=0, data=None, commit_failures=0):
        member = {"id": "", "address": "http://a:1", "store": "s:2", "step": step, "world_size": 2, "data": data,
                  "commit_failures": commit_failures}
        self.process.stdin.write(json.dumps(member) + "\n")
        self.process.stdin.flush()
        self.is_open = True
        return self

    def line(self):
        hang = threading.Timer(HANG, self.process.kill)
        hang.start()
        line = self.process.stdout.readline()
        hang.cancel()
        self.is_open = False
        assert line, f"{self.id} has ended or said nothing for {HANG} s: " + self.notes()
        return json.loads(line)

    def quorum(self):
        line = self.line()
        assert "quorum" in line, line
        return line["quorum"]

    def notes(self):
        self.log.seek(0)
        return self.log.read()

    def wait_for_note(self, text):
        wait_until(lambda: text in self.notes(), f"the log of {self.id} has {text!r}")

    def signal(self, number):
        self.process.send_signal(number)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.log):
            try:
                file.close()
            except BrokenPipeError:
                pass


def ids(quorum):
    return [member["id"] for member in quorum["members"]]


class MembershipCase(Case):
    def setUp(self):
        super().setUp()
        self.run_name = self.folder.name  # so that agents of other tests are not taken for this one's
        self.groups = []
        self.addCleanup(self.no_agent_is_left)

    def no_agent_is_left(self):
        for group in self.groups:
            group.close()
        for group in self.groups:
            wait_until(lambda group=group: not agents_of(group.id), f"the agent of {group.id} has ended")

    def group(self, url, name, **options):
        self.groups.append(Group(url, f"{self.run_name}_{name}:u", self.folder / f"{name}.log", **options))
        return self.groups[-1]

    def assert_same(self, *quorums):
        """Members and epoch are the same for all groups that asked."""
        for quorum in quorums:
            self.assertEqual({**quorum, "self": ""}, {**quorums[0], "self": ""})
            self.assertIn(quorum["self"], ids(quorum))
