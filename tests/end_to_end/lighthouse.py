"""The real lighthouse of torchft on a free port of this host, for tests of replica groups:

    with Lighthouse(min_replicas=2, heartbeat_timeout_ms=1000) as lighthouse:
        start_a_job(TORCHFT_LIGHTHOUSE=lighthouse.url)

Its extension file is loaded without the package torchft, which would import torch. Started as a program it is the lighthouse."""

import importlib.machinery
import importlib.util
import pathlib
import signal
import subprocess
import sys

MISSING = ("torchft is not installed; see the first lines of requirements-torchft.txt")


def extension():
    """The path of torchft's extension file, or None."""
    package = importlib.util.find_spec("torchft")
    for folder in package.submodule_search_locations if package else []:
        for file in pathlib.Path(folder).glob("_torchft*.so"):
            return file
    return None


def load():
    """torchft's classes, as LighthouseServer, LighthouseClient and ManagerServer."""
    loader = importlib.machinery.ExtensionFileLoader("_torchft", str(extension()))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_torchft", loader))
    loader.exec_module(module)
    return module


class Lighthouse:
    """`url` stays the same after restart(). At its end the process is killed. `within`: a command that runs it elsewhere, where it has
    the address `host`."""

    def __init__(self, min_replicas=1, join_timeout_ms=60000, heartbeat_timeout_ms=5000, quorum_tick_ms=100, host="127.0.0.1", within=()):
        self.host, self.within = host, within
        self.settings = (min_replicas, join_timeout_ms, quorum_tick_ms, heartbeat_timeout_ms)
        self.port, self.process = 0, None
        self.start()

    def start(self):
        """Returns when it listens."""
        self.process = subprocess.Popen([*self.within, sys.executable, __file__, self.host, str(self.port), *map(str, self.settings)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = self.process.stdout.readline()
        assert said.startswith("http://"), f"the lighthouse did not start at port {self.port}: {said!r}"
        self.port = int(said.rsplit(":", 1)[1])
        self.url = f"http://{self.host}:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def restart(self):
        """Loses its memory: it knows no group any more."""
        self.kill()
        self.start()

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def serve(host, port, min_replicas, join_timeout_ms, quorum_tick_ms, heartbeat_timeout_ms):
    # kept in a variable: the server ends with its object
    server = load().LighthouseServer(f"{host}:{port}", min_replicas, join_timeout_ms, quorum_tick_ms, heartbeat_timeout_ms)
    print(server.address(), flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: ends with the test
    serve(sys.argv[1], *map(int, sys.argv[2:]))
