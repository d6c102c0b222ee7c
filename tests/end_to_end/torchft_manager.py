"""torchft's own manager as a member of a lighthouse's quorum, without the package's Python part, which needs torch. Started as a
program with the lighthouse's address it takes part in quorums until it is killed, and prints the members of each as a line of JSON."""

import ctypes
import json
import signal
import sys
import time
from datetime import timedelta

import lighthouse


def take_part(url):
    torchft = lighthouse.load()
    server = torchft.ManagerServer("torchft_manager", url, "127.0.0.1", "127.0.0.1:0", "127.0.0.1:1", 1, timedelta(milliseconds=100), timedelta(seconds=10), 0)
    client = torchft.ManagerClient(server.address(), timedelta(seconds=10))
    for step in range(10**9):
        # init_sync=False: it asks nobody for weights
        quorum = client._quorum(group_rank=0, step=step, checkpoint_metadata="", shrink_only=False, timeout=timedelta(seconds=60), init_sync=False, commit_failures=0)
        print(json.dumps({"id": quorum.quorum_id, "members": quorum.replica_world_size}), flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: ends with the test
    take_part(sys.argv[1])
