"""A training process of torchft, with the Manager of its Python package: a toy model over gloo, a quorum and a vote in each step. Started as
a program with the lighthouse's address it waits for a line, then trains until SIGTERM, which shuts it down. It prints each attempt of a step as
a line of JSON."""

import ctypes
import json
import signal
import sys
from datetime import timedelta

import torch
import torchft

CONNECT = timedelta(seconds=1)  # each step waits so long for members that do not connect
HANG = timedelta(seconds=600)


class Groups(torchft.ProcessGroupGloo):
    """Remembers the members of the quorum."""

    members = 0

    def configure(self, store_addr, replica_id, rank, world_size, *args, **kwargs):
        self.members = world_size
        super().configure(store_addr, replica_id, rank, world_size, *args, **kwargs)


def train(url):
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    print(json.dumps({"is_ready": True}), flush=True)
    sys.stdin.readline()
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    groups = Groups(timeout=CONNECT)
    manager = torchft.Manager(groups, model.load_state_dict, model.state_dict, min_replica_size=1, timeout=HANG, quorum_timeout=HANG, rank=0,
                              world_size=1, store_addr="127.0.0.1", store_port=store.port, lighthouse_addr=url, replica_id="toy", hostname="127.0.0.1")
    while not ended:
        manager.start_quorum()
        optimizer.zero_grad()
        inputs = torch.randn(8, 4)
        (model(inputs) - inputs.sum(1, keepdim=True)).square().mean().backward()
        for parameter in model.parameters():
            manager.allreduce(parameter.grad).wait()
        commits = manager.should_commit()
        if commits:
            optimizer.step()
        print(json.dumps({"members": groups.members, "commits": commits, "step": manager.current_step()}), flush=True)
    manager.shutdown()
    groups.shutdown()
    print(json.dumps({"is_shut_down": True}), flush=True)


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: ends with the test
    train(sys.argv[1])
