"""Two hosts, each with its own network and host name (namespaces of the kernel), joined by a virtual cable: `titan launch` on both trains as on one host. The cable is then slow
(tc tbf), loses packets (nftables), or is unplugged for a while or for good. Needs root, iproute2 and nftables."""

import itertools
import os
import re
import shutil
import subprocess
import time

from harness import HANG, ROOT, TITAN, Case, environment, losses, main, metrics

MODEL = ["--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4"]
TINY_JOB = ["--job.config_file", "train_configs/debug_model.toml", *MODEL, "--training.seq_len", "64", "--metrics.no_enable_tensorboard",
            "--training.global_batch_size", "4"]
LAYOUTS = {"ddp": ["--parallelism.data_parallel_replicate_degree", "2", "--parallelism.data_parallel_shard_degree", "1"],
           "fsdp": ["--parallelism.data_parallel_shard_degree", "2"]}
PORT = 29500  # of a namespace that no other process is in
COUNTER = itertools.count()
# Runs "$@" on a host: $1 its name, $2 its /etc/hosts.
ON_HOST = 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'
STEP_TIME = "time_metrics/end_to_end(s)"


def call(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def why_not():
    """Why this machine cannot have two hosts; empty if it can."""
    missing = [name for name in ("ip", "tc", "nft", "unshare") if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} missing: install iproute2 and nftables"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    name = f"titan{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode != 0:
        return "no network namespace can be made: " + made.stderr.strip()
    call("ip", "netns", "del", name)
    return ""


class NetworkDrill(Case):
    @classmethod
    def setUpClass(cls):
        if reason := why_not():
            cls.skipTest(cls, reason)

    def setUp(self):
        super().setUp()
        key = f"{os.getpid()}{next(COUNTER)}"
        self.hosts = [f"titan{key}a", f"titan{key}b"]
        self.links = ["eth0", "eth1"]
        self.names = self.write("hosts", "127.0.0.1 localhost\n" + "".join(f"10.77.0.{i + 1} {host}\n" for i, host in enumerate(self.hosts)))
        self.nodes = []
        for host in self.hosts:
            call("ip", "netns", "add", host)
            self.addCleanup(call, "ip", "netns", "del", host)
        self.addCleanup(self.end_nodes)
        call("ip", "link", "add", self.links[0], "netns", self.hosts[0], "type", "veth", "peer", "name", self.links[1], "netns", self.hosts[1])
        for i, host in enumerate(self.hosts):
            call("ip", "-n", host, "address", "add", f"10.77.0.{i + 1}/24", "dev", self.links[i])
            for link in ("lo", self.links[i]):
                call("ip", "-n", host, "link", "set", link, "up")

    def end_nodes(self):
        for node in self.nodes:
            if node.poll() is None:
                node.kill()
            node.communicate()
        for host in self.hosts:
            for pid in call("ip", "netns", "pids", host).split():
                subprocess.run(["kill", "-9", pid], capture_output=True)

    def inside(self, host, *command, **options):
        return call("ip", "netns", "exec", self.hosts[host], *command, **options)

    def job(self, layout, steps, out):
        return ["train", *TINY_JOB, *LAYOUTS[layout], "--training.steps", str(steps), "--job.dump_folder", str(out)]

    def start(self, layout, steps, *flags):
        """titan launch on both hosts."""
        for rank, host in enumerate(self.hosts):
            self.nodes.append(subprocess.Popen(
                ["ip", "netns", "exec", host, "unshare", "--uts", "--mount", "sh", "-c", ON_HOST, "sh", host, self.names, TITAN, "launch", "--nnodes", "2", "--node-rank", str(rank), "--nproc", "1", "--master",
                 f"{self.hosts[0]}:{PORT}", "--log-dir", str(self.folder / f"logs{rank}"), "--", *self.job(layout, steps, self.out), *flags],
                cwd=ROOT, env=environment(), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))

    def finish(self, code=0):
        nodes, self.nodes = self.nodes, []
        outputs = [node.communicate(timeout=HANG)[0] for node in nodes]
        self.assertEqual([node.returncode for node in nodes], [code, code], "\n-----\n".join(outputs))
        return outputs

    def on_one_host(self, layout, steps):
        """The losses of two ranks in one namespace, by the same transport."""
        out = self.folder / f"one {layout} {steps}"
        call(TITAN, "launch", "--nproc", "2", "--log-dir", self.folder / "logs one", "--", *self.job(layout, steps, out), "--device.transport", "gloo",
             cwd=ROOT, env=environment(), timeout=HANG)
        return losses(out)

    def num_steps(self):
        path = self.out / "metrics.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    def wait_until(self, condition):
        limit = time.monotonic() + HANG
        while not condition():
            self.assertLess(time.monotonic(), limit, "it never happened")
            self.assertTrue(all(node.poll() is None for node in self.nodes), "the run has ended")
            time.sleep(0.01)

    def sent_bytes(self):
        return int(self.inside(0, "cat", "/sys/class/net/eth0/statistics/tx_bytes"))

    def slow_down(self, bits_per_second, burst):
        for i in range(2):
            self.inside(i, "tc", "qdisc", "add", "dev", self.links[i], "root", "tbf", "rate", f"{bits_per_second}bit", "burst", burst, "latency", "10s")

    def unplug(self, down=True):
        call("ip", "-n", self.hosts[0], "link", "set", self.links[0], "down" if down else "up")

    def test_two_hosts_train_as_one(self):
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                before = self.sent_bytes()
                self.start(layout, 5)
                out = self.finish()[0]
                self.assertIn("communicate over gloo", out)
                # what the step exchanges has really crossed the cable: more than the weights, 4 bytes each
                parameters = int(re.search(r"([\d,]+) parameters", out).group(1).replace(",", ""))
                self.assertGreater(self.sent_bytes() - before, 4 * parameters)
                self.assertEqual(losses(self.out), self.on_one_host(layout, 5))
                shutil.rmtree(self.out)

    def test_a_slow_cable_slows_the_steps_and_changes_no_number(self):
        steps, burst = 6, 65536
        self.start("ddp", steps)
        self.finish()
        fast = [line[STEP_TIME] for line in metrics(self.out)]
        expected = losses(self.out)
        shutil.rmtree(self.out)

        rate = 8_000_000
        self.slow_down(rate, burst)
        before, began = self.sent_bytes(), time.monotonic()
        self.start("ddp", steps)
        self.finish()
        seconds = time.monotonic() - began
        slow = [line[STEP_TIME] for line in metrics(self.out)]
        sent = self.sent_bytes() - before
        print(f"{sent} bytes sent; seconds of a step: {sorted(fast)[steps // 2]:.3f} at full speed, {sorted(slow)[steps // 2]:.3f} at {rate / 1e6:g} Mbit/s", flush=True)
        self.assertEqual(losses(self.out), expected)
        # a token bucket lets no more through than its burst and its rate; this bound holds at any speed of the machine
        self.assertGreaterEqual(seconds, (sent - burst) * 8 / rate)
        self.assertGreater(sum(slow[1:]), sum(fast[1:]))

    def test_a_cable_that_loses_packets_changes_no_number(self):
        rules = """table inet drill {
  counter lost { }
  chain input {
    type filter hook input priority 0;
    iifname "%s" numgen random mod 100 < 3 counter name lost drop
  }
}
"""
        for i in range(2):
            self.inside(i, "nft", "-f", "-", input=rules % self.links[i])
        self.start("fsdp", 5)
        self.finish()
        for i in range(2):
            found = re.search(r"packets (\d+)", self.inside(i, "nft", "list", "counter", "inet", "drill", "lost"))
            print(f"host {i} lost {found.group(1)} packets", flush=True)
            self.assertGreater(int(found.group(1)), 0)
        self.assertEqual(losses(self.out), self.on_one_host("fsdp", 5))

    def test_a_run_continues_after_the_cable_was_unplugged_for_some_seconds(self):
        steps = 60
        self.slow_down(50_000_000, 65536)  # so that the run does not end before
        self.start("ddp", steps)
        self.wait_until(lambda: self.num_steps() >= 3)
        self.unplug()
        time.sleep(1)  # a step in flight may end
        stuck = self.num_steps()
        time.sleep(3)  # not a matter of speed: without a cable no step can end
        self.assertEqual(self.num_steps(), stuck)
        self.assertLess(stuck, steps)
        self.unplug(down=False)
        self.finish()
        self.assertEqual(losses(self.out), self.on_one_host("ddp", steps))

    def test_a_cable_that_stays_unplugged_ends_the_run_by_name(self):
        timeout = 10
        self.start("ddp", 100_000, "--comm.train_timeout_seconds", str(timeout))
        self.wait_until(lambda: self.num_steps() >= 3)
        self.unplug()
        began = time.monotonic()
        outputs = self.finish(code=1)
        print(f"ended {time.monotonic() - began:.0f} s after the cut, with a timeout of {timeout} s", flush=True)
        for rank, out in enumerate(outputs):
            # of gradients, of the figures of metrics, or the store of the ranks
            self.assertRegex(out, rf"error: .*(all_reduce|all_gather|rank {1 - rank}|store)", out)
            self.assertIn("in training step", out)


if __name__ == "__main__":
    main()
