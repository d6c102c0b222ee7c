"""A small script that imitates ranks on request (print, fail, hang, handle signals), and functions to start groups of it with
`titan launch --program`. Used by launch_test.py."""

import pathlib
import re
import subprocess
import sys
import time

from harness import HANG, TITAN, Case, environment

# A rank prints its rank and process id. Its first argument is an action, its second the rank that runs it ("all": every
# rank); the other ranks wait for a signal.
RANK = f"""#!{sys.executable} -IS
import json, os, signal, socket, sys
rank, asked, whom = int(os.environ["RANK"]), sys.argv[1], sys.argv[2]
def say(text, to=sys.stdout):
    print(text, file=to, flush=True)
def take(number, frame):
    os.write(1, f"took {{signal.Signals(number).name}}\\n".encode())  # a print may be under way
if asked == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if asked == "leave":  # as titan does without checkpoints
    signal.signal(signal.SIGUSR1, lambda number, frame: sys.exit(143))
if asked == "listen":
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        signal.signal(number, take)
say(f"rank {{rank}} pid {{os.getpid()}} group {{os.getpgrp()}}")
if asked == "environment":
    say(json.dumps(dict(os.environ)))
    sys.exit(0)
if asked == "meet":  # everyone greets rank 0 where the launcher said
    place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        with socket.create_server(place) as server:
            others = [server.accept()[0].recv(10).decode() for i in range(int(os.environ["WORLD_SIZE"]) - 1)]
        say("met " + " ".join(sorted(others)))
    else:
        while True:
            try:
                socket.create_connection(place).sendall(str(rank).encode())
                break
            except ConnectionRefusedError:
                pass  # rank 0 is not there yet
    sys.exit(0)
if asked == "restart" and int(os.environ["TORCHELASTIC_RESTART_COUNT"]) >= 2:
    say("port " + os.environ["MASTER_PORT"])
    sys.exit(0)
if asked == "flood":
    while True:
        say("x" * 1000)
if asked == "count":
    for i in range(20000):
        say(f"line {{i}}")
    sys.exit(0)
if asked == "read":
    say("read " + repr(sys.stdin.read()))
    sys.exit(0)
if whom in ("all", str(rank)):
    if asked in ("fail", "restart"):
        say("port " + os.environ["MASTER_PORT"])
        say("working")
        say(f"error: rank {{rank}} has no data\\n  while looking for it", sys.stderr)
        sys.exit(5)
    if asked == "code":
        sys.exit(int(sys.argv[3]))
while True:
    signal.pause()
"""


class LaunchCase(Case):
    def setUp(self):
        super().setUp()
        self.program = self.write("rank.py", RANK)
        self.program.chmod(0o755)
        self.logs = self.folder / "logs"

    def command(self, nproc, asked, whom="none", *more, flags=()):
        return [TITAN, "launch", "--nproc", str(nproc), "--log-dir", str(self.logs), "--program", str(self.program), *flags, "--",
                asked, str(whom), *more]

    def launch(self, nproc, asked, whom="none", *more, flags=(), **env):
        """Runs ranks until they end."""
        return subprocess.run(self.command(nproc, asked, whom, *more, flags=flags), cwd=self.folder, env={**environment(), **env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)

    def start(self, nproc, asked, whom="none", *more, flags=(), **options):
        process = subprocess.Popen(self.command(nproc, asked, whom, *more, flags=flags), cwd=self.folder, env=environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        for stream in (process.stdout, process.stderr):
            stream.close()
        process.wait()

    def log(self, rank):
        path = self.logs / f"rank{rank}.log"
        return path.read_text() if path.exists() else ""

    def pids(self, nproc):
        """Waits until every rank has printed its process id."""
        return [int(self.wait_for(rf"rank {rank} pid (\d+) ", rank).group(1)) for rank in range(nproc)]

    def wait_for(self, pattern, rank):
        limit = time.monotonic() + HANG
        while time.monotonic() < limit:
            if found := re.search(pattern, self.log(rank)):
                return found
            time.sleep(0.005)
        raise AssertionError(f"rank {rank} never said {pattern!r}: {self.log(rank)[-1000:]}")

    def assert_gone(self, pids):
        """The launcher reaps all ranks before it ends, so there is nothing to wait for."""
        self.assertEqual([pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()], [])
