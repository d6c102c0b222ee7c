"""titan-replica without a lighthouse: a server that is absent, another server, malformed addresses, an agent that dies."""

import http.server
import os
import signal
import subprocess
import threading

from harness import HANG, main
from membership_case import AGENT, PROBE, MembershipCase, agents_of, wait_until


class MembershipAgent(MembershipCase):
    def test_a_lighthouse_that_is_absent_is_named(self):
        url = f"http://127.0.0.1:{self.free_port()}"
        group = self.group(url, "a", connect_timeout_ms=300).ask()
        failure = group.line()["failure"]
        for part in (url, "TORCHFT_LIGHTHOUSE", "did not answer for 0.3 s", "torchft_lighthouse --min_replicas"):
            self.assertIn(part, failure)
        self.assertEqual(group.process.wait(HANG), 1)

    def test_another_server_at_the_address_is_named(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        self.assertIn(f"the lighthouse at {url}", self.group(url, "a", connect_timeout_ms=300).ask().line()["failure"])

    def test_a_malformed_address_is_named(self):
        for url, part in (("localhost:29510", "does not begin with http://"), ("https://a:1", "no TLS"), ("http://a", "host:port"),
                          ("http://a:99999", "99999"), ("http://a:1/x", "more than a host and a port"), ("", "is empty")):
            group = self.group(url, "a")
            self.assertIn(part, group.line()["failure"])

    def test_an_agent_that_ends_before_it_answered_is_an_error(self):
        group = self.group(f"http://127.0.0.1:{self.free_port()}", "a").ask()
        wait_until(lambda: agents_of(group.id), "the agent runs")
        os.kill(agents_of(group.id)[0], signal.SIGKILL)
        self.assertIn("titan-replica, which speaks to the lighthouse, was ended by signal 9", group.line()["failure"])

    def test_only_the_agent_loads_a_network_library(self):
        for file, wanted in ((PROBE, False), (AGENT, True)):
            needed = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
            self.assertEqual("libcurl" in needed, wanted, needed)


if __name__ == "__main__":
    main()
