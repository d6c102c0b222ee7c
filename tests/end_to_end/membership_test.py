"""The membership client of replica groups with torchft's real lighthouse: groups join, die, are stopped and continue; the lighthouse is
killed, restarts and hangs; torchft's own client is a member together with ours. membership_probe stands in for rank 0 of a group."""

import concurrent.futures
import datetime
import os
import signal

import lighthouse
from harness import HANG, main, thorough
from membership_case import MembershipCase, agents_of, ids, wait_until


class MembershipTest(MembershipCase):
    @classmethod
    def setUpClass(cls):
        if not lighthouse.extension():
            cls.skipTest(cls, lighthouse.MISSING)

    def lighthouse(self, **settings):
        server = lighthouse.Lighthouse(**settings)
        self.addCleanup(server.__exit__)
        return server

    def join(self, server, names):
        """Groups that become members one after the other. A group starts when it is its turn, because two that run wait for each
        other's first request. It is in as soon as the present members ask again. Returns the groups and the last answer."""
        members = [self.group(server.url, names[0])]
        quorums = [members[0].ask().quorum()]
        self.assertEqual(ids(quorums[0]), [members[0].id])
        for name in names[1:]:
            new = self.group(server.url, name).ask(step=1)
            while new.id not in ids(quorums[0]):
                quorums = [group.quorum() for group in [group.ask(step=1) for group in members]]
            members.append(new)
            quorums.append(new.quorum())
            self.assert_same(*quorums)
        return members, quorums[0]

    def ask_until_alone(self, groups, replaced=()):
        """Each group repeats its request until the members of its answer are exactly these groups. Returns the answer.
        replaced: former ids of groups, which the lighthouse may still list together with the current ones or instead of them."""
        names = [group.id.split(":")[0] for group in groups]

        def ask(group):
            while True:
                if not group.is_open:
                    group.ask(step=2)
                quorum = group.quorum()
                if [member.split(":")[0] for member in ids(quorum)] == names and not set(ids(quorum)) & set(replaced):
                    return quorum

        with concurrent.futures.ThreadPoolExecutor(len(groups)) as threads:
            answers = [threads.submit(ask, group) for group in groups]
            done, _ = concurrent.futures.wait(answers, return_when=concurrent.futures.FIRST_EXCEPTION)
            if any(answer.exception() for answer in done):  # the others would wait for this group
                for group in groups:
                    group.process.kill()
        quorums = [answer.result() for answer in answers]
        self.assert_same(*quorums)
        return quorums[0]

    def test_groups_join_one_after_the_other(self):
        server = self.lighthouse(min_replicas=1)
        groups, joined = self.join(server, "abc")
        self.assertEqual(ids(joined), [group.id for group in groups])
        again = self.ask_until_alone(groups)
        self.assertEqual(ids(again), ids(joined))
        self.assertEqual(again["id"], joined["id"])
        self.assertNotEqual(again["epoch"], joined["epoch"])
        # a group that failed to commit gets a new number for all
        quorums = [group.quorum() for group in [group.ask(commit_failures=index) for index, group in enumerate(groups)]]
        self.assert_same(*quorums)
        self.assertEqual(quorums[0]["id"], again["id"] + 1)
        self.assertEqual([member["commit_failures"] for member in quorums[0]["members"]], [0, 1, 2])

    def test_what_a_member_says_comes_back_unchanged(self):
        server = self.lighthouse(min_replicas=1)
        data = {"hash": "Größe \U0001f600 \"\n", "list": [1, 2.5, None, True], "map": {"x": {}}, "long": "x" * 100000}
        group = self.group(server.url, "a")
        for step in (0, 1, 2**62):
            quorum = group.ask(step=step, data=data).quorum()
            self.assertEqual(quorum["members"], [{"id": group.id, "address": "http://a:1", "store": "s:2", "step": step, "world_size": 2,
                                                  "data": data, "commit_failures": 0}])
        self.assertIsNone(group.ask().quorum()["members"][0]["data"])

    def test_torchfts_own_client_is_a_member_beside_ours(self):
        server = self.lighthouse(min_replicas=2)
        ours = self.group(server.url, "a").ask(step=7, data={"lineage": "ff", "list": [1, 2]})
        limit = datetime.timedelta(seconds=HANG)
        client = lighthouse.load().LighthouseClient(server.url, limit)
        client.heartbeat("zz", limit)
        theirs = client.quorum("zz", limit, address="http://z:1", store_address="z:2", step=2**40, world_size=3, data={"key": [1, "ü"]})
        quorum = ours.quorum()
        self.assertEqual((quorum["id"], ids(quorum)), (theirs.quorum_id, [ours.id, "zz"]))
        self.assertTrue(quorum["epoch"].startswith(f"{theirs.quorum_id}-{theirs.created.seconds}-{theirs.created.nanos}-"), quorum["epoch"])
        for here, there in zip(quorum["members"], sorted(theirs.participants, key=lambda member: member.replica_id), strict=True):
            self.assertEqual((here["id"], here["address"], here["store"], here["step"], here["world_size"], here["data"]),
                             (there.replica_id, there.address, there.store_address, there.step, there.world_size, there.data))

    def test_a_killed_group_is_found_dead_and_its_agent_ends(self):
        server = self.lighthouse(min_replicas=1, heartbeat_timeout_ms=1000)
        (a, b, c), _ = self.join(server, "abc")
        b.signal(signal.SIGKILL)
        self.ask_until_alone([a, c])
        wait_until(lambda: not agents_of(b.id), "the agent of the killed group has ended")
        c.ask()  # with an open request: it stays listed, but nobody beats for it
        wait_until(lambda: agents_of(c.id), "the agent of c runs")
        c.signal(signal.SIGKILL)
        self.ask_until_alone([a])

    def test_a_group_whose_run_ends_leaves(self):
        server = self.lighthouse(min_replicas=1, heartbeat_timeout_ms=1000)
        (a, b), _ = self.join(server, "ab")
        b.process.stdin.close()
        self.assertEqual(b.process.wait(HANG), 0)
        self.assertEqual(agents_of(b.id), [])
        self.ask_until_alone([a])

    def test_a_stopped_group_is_found_dead_and_comes_back(self):
        server = self.lighthouse(min_replicas=1, heartbeat_timeout_ms=1000)
        (a, b), _ = self.join(server, "ab")
        b.signal(signal.SIGSTOP)  # its agent runs on
        self.ask_until_alone([a])
        self.assertEqual(len(agents_of(b.id)), 1)
        b.signal(signal.SIGCONT)
        b.ask(step=5)
        while b.id not in ids(a.ask(step=6).quorum()):
            pass
        self.assertEqual([member["step"] for member in b.quorum()["members"]], [6, 5])

    def test_a_group_that_is_stopped_with_an_open_request_gets_an_answer(self):
        server = self.lighthouse(min_replicas=1, heartbeat_timeout_ms=1000)
        (a, b), _ = self.join(server, "ab")
        b.ask(step=2)
        b.signal(signal.SIGSTOP)
        answers = [a.ask(step=2).quorum()]
        while ids(answers[-1]) != [a.id]:
            answers.append(a.ask(step=2).quorum())
        b.signal(signal.SIGCONT)
        # unless its request was answered before it was dead, it is in as soon as a asks again
        while not any(b.id in ids(answer) for answer in answers):
            answers.append(a.ask(step=3).quorum())
        late = b.quorum()
        self.assertIn(b.id, ids(late))
        self.assertIn(late["epoch"], [answer["epoch"] for answer in answers])

    def test_open_requests_survive_a_restart_of_the_lighthouse(self):
        server = self.lighthouse(min_replicas=3)
        groups = [self.group(server.url, name) for name in "abc"]
        before = self.ask_until_alone(groups)
        for group in groups[:2]:
            group.ask(step=9)
        server.kill()
        for group in groups:
            group.wait_for_note("does not answer")
        server.start()
        groups[2].ask(step=9)
        quorums = [group.quorum() for group in groups]
        self.assert_same(*quorums)
        self.assertEqual(ids(quorums[0]), ids(before))  # the same ids
        self.assertEqual([member["step"] for member in quorums[0]["members"]], [9, 9, 9])
        self.assertNotEqual(quorums[0]["epoch"], before["epoch"])
        for group in groups:
            self.assertIn(f"found the lighthouse at {server.url} (TORCHFT_LIGHTHOUSE) after", group.notes())

    def test_a_lighthouse_that_starts_after_the_groups_is_found(self):
        server = self.lighthouse(min_replicas=2)
        server.kill()
        groups = [self.group(server.url, name).ask() for name in "ab"]
        for group in groups:
            group.wait_for_note("does not answer")
        server.start()
        self.assert_same(*[group.quorum() for group in groups])

    @thorough  # it waits for 20 seconds
    def test_a_lighthouse_that_hangs_is_asked_under_a_new_id(self):
        server = self.lighthouse(min_replicas=2, heartbeat_timeout_ms=1000)
        a, b = self.group(server.url, "a"), self.group(server.url, "b")
        self.ask_until_alone([a, b])
        a.ask(step=3)
        server.stop()
        a.wait_for_note("again as")
        server.go_on()
        self.assertNotEqual(self.ask_until_alone([a, b], replaced=[a.id])["self"], a.id)
        self.assertIn("because it may still list " + a.id, a.notes())

    def test_an_agent_that_is_killed_is_replaced(self):
        server = self.lighthouse(min_replicas=2, heartbeat_timeout_ms=1000)
        a, b = self.group(server.url, "a"), self.group(server.url, "b")
        self.ask_until_alone([a, b])
        a.ask(step=4)
        (agent,) = agents_of(a.id)
        os.kill(agent, signal.SIGKILL)
        a.wait_for_note("titan-replica was ended by signal 9")
        renewed = self.ask_until_alone([a, b], replaced=[a.id])
        self.assertNotEqual(renewed["self"], a.id)
        self.assertEqual(len(agents_of(a.id)), 1)
        self.assertEqual(self.ask_until_alone([a, b])["self"], renewed["self"])  # it keeps the new id


if __name__ == "__main__":
    main()
