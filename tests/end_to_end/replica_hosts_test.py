"""Replica groups on hosts of their own (network namespaces), of which two do not reach each other. Needs root, iproute2 and nftables."""

import lighthouse
from drill_network import ThreeHosts, why_not
from harness import main
from replica_groups import ENDLESS, Replicas


class ReplicaHostsTest(Replicas):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if reason := why_not():
            cls.skipTest(cls, reason)

    def setUp(self):
        super().setUp()
        self.lighthouse.kill()
        self.hosts = ThreeHosts(self, 2)
        self.lighthouse = lighthouse.Lighthouse(**self.LIGHTHOUSE, host=self.hosts.hub, within=self.hosts.inside_hub())
        self.addCleanup(self.lighthouse.__exit__)

    def test_groups_that_do_not_reach_each_other_name_the_address(self):
        groups = [self.start(replica, "--fault_tolerance.process_group_timeout_ms=2000", steps=ENDLESS, **self.hosts.options(replica)) for replica in range(2)]
        self.wait_until(lambda: all("trains with 2 groups" in group.said() for group in groups), *groups)
        self.hosts.cut(0, self.hosts.address(1))
        for group, other in zip(groups, reversed(groups)):
            self.wait_until(lambda: "does not reach" in group.said(), *groups)
            self.assertRegex(group.said(), rf"warning the lighthouse lists replica_0, replica_1, but replica group {group.replica} cannot connect to them: "
                                           rf"it does not reach replica_{other.replica} at {self.hosts.names[other.replica]}:\d+; none of them trains")
        step = max(group.step() for group in groups)
        self.hosts.join(0)
        self.wait_for_step(step + 3, *groups)
        self.wait_until(lambda: all(group.events()[-1]["groups"] == 2 for group in groups), *groups)
        self.stop(*groups)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)


if __name__ == "__main__":
    main()
