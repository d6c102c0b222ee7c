"""Hosts of the drills: network namespaces of the kernel, each joined by a virtual cable to a hub, where the lighthouse runs."""

import itertools
import os
import shutil
import subprocess

COUNTER = itertools.count()
# Runs "$@" on a host: $1 its name, $2 its /etc/hosts.
ON_HOST = 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'
DROP = """table inet drill {
  chain input { type filter hook input priority 0; iifname "eth0" ip saddr %(others)s drop; }
  chain output { type filter hook output priority 0; oifname "eth0" ip daddr %(others)s drop; }
}
"""


def call(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def why_not():
    """Why this machine cannot have hosts; empty if it can."""
    missing = [name for name in ("ip", "nft", "unshare") if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} missing: install iproute2 and nftables"
    return "" if os.geteuid() == 0 else "only root may make network namespaces"


class ThreeHosts:
    """`number` hosts and a hub, removed at the end of `case`."""

    def __init__(self, case, number):
        if reason := why_not():
            case.skipTest(reason)
        key = f"titan{os.getpid()}{next(COUNTER)}"
        self.hub_name, self.hub = f"{key}hub", "10.78.0.100"
        self.names = [f"{key}{chr(ord('a') + i)}" for i in range(number)]
        addresses = "".join(f"{self.address(i)} {name}\n" for i, name in enumerate(self.names))
        self.hosts = case.write("hosts", f"127.0.0.1 localhost\n{addresses}")
        for name in (self.hub_name, *self.names):
            call("ip", "netns", "add", name)
            case.addCleanup(call, "ip", "netns", "del", name)
            call("ip", "-n", name, "link", "set", "lo", "up")
        call("ip", "-n", self.hub_name, "link", "add", "bridge", "type", "bridge")
        call("ip", "-n", self.hub_name, "address", "add", f"{self.hub}/24", "dev", "bridge")
        call("ip", "-n", self.hub_name, "link", "set", "bridge", "up")
        for i, name in enumerate(self.names):
            call("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"port{i}", "netns", self.hub_name)
            call("ip", "-n", self.hub_name, "link", "set", f"port{i}", "master", "bridge", "up")
            call("ip", "-n", name, "address", "add", f"{self.address(i)}/24", "dev", "eth0")
            call("ip", "-n", name, "link", "set", "eth0", "up")

    @staticmethod
    def address(host):
        return f"10.78.0.{host + 1}"

    def inside_hub(self):
        """The command that runs another one on the host of the lighthouse."""
        return ["ip", "netns", "exec", self.hub_name]

    def options(self, host):
        """For replica_groups.Group."""
        name = self.names[host]
        within = ["ip", "netns", "exec", name, "unshare", "--uts", "--mount", "sh", "-c", ON_HOST, "sh", name, str(self.hosts)]
        return {"within": within}

    def cut(self, host, others="10.78.0.0/24"):
        """The host sends to `others` and receives from them nothing more; to itself it does."""
        call("ip", "netns", "exec", self.names[host], "nft", "-f", "-", input=DROP % {"others": others})

    def join(self, host):
        call("ip", "netns", "exec", self.names[host], "nft", "delete", "table", "inet", "drill")
