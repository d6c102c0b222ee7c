"""A run asks no name server about its ranks' addresses, so that a server that does not answer cannot delay it. The test runs in
namespaces of its own, with a name server that counts the requests and never answers."""

import subprocess
import sys
import unittest

from branches_test import BranchesCase
from checkpoint_mounts_test import can_mount
from harness import HANG, ROOT, TITAN, main
from ranks_test import bare_environment

# Prints the requests and their number, and whether a look-up of a name reaches the server at all.
COUNTING = """
import socket, subprocess, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
server.setblocking(False)
def requests():
    count = 0
    try:
        while request := server.recv(512):
            count += 1
            print("request", request[12:])
    except BlockingIOError:
        return count
code = subprocess.run(sys.argv[1:]).returncode
during = requests()
try:
    socket.getnameinfo(("127.0.0.9", 1), socket.NI_NAMEREQD)
except socket.gaierror:
    pass
print("requests", during, "reached", requests() > 0)
sys.exit(code)
"""
INSIDE = 'ip link set lo up && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'


@unittest.skipUnless(can_mount(), "no mount namespace can be made here")
class NameServerTest(BranchesCase):
    def test_a_run_asks_no_name_server(self):
        resolver = self.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        job = self.command("--training.steps", 3, "--checkpoint.interval", 2, "--model.dim", 64, "--model.n_layers", 1, "--model.n_heads", 2,
                           "--model.n_kv_heads", 1)
        run = subprocess.run([str(word) for word in (
            "unshare", "--map-root-user", "--net", "--mount", "sh", "-c", INSIDE, "sh", resolver, sys.executable, "-c", COUNTING, TITAN,
            "launch", "--nproc", 2, "--in-process", "--max-restarts", 1, "--", *job)], cwd=ROOT, env=bare_environment(), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=HANG)
        self.assertEqual(run.returncode, 0, run.stderr)
        if "reached False" in run.stdout:
            self.skipTest("the C library of this machine does not ask the servers of /etc/resolv.conf")
        self.assert_holds(run.stdout, "requests 0 reached True")


if __name__ == "__main__":
    main()
