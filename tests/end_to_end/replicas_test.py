"""Replica groups (fault_tolerance.enable) that fail, come back, wait and are refused, at torchft's lighthouse."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from harness import main, thorough, titan
from replica_groups import CHECKPOINTS, ENDLESS, Replicas, command_line, lines_of

MANAGER = pathlib.Path(__file__).parent / "torchft_manager.py"
EXIT_CONFIG = 2


class ReplicasTest(Replicas):
    def test_a_killed_group_comes_back(self):
        steps, both = 20, "--fault_tolerance.min_replica_size=2"  # so that none finishes alone, however late the other one starts
        expected = self.undisturbed(steps)
        order = self.out / "replica_1" / "strike.0"
        order.parent.mkdir(parents=True)
        order.write_text(f"backward {int(signal.SIGKILL)} 0 3\n")  # in step 3
        groups = [self.start(replica, both, steps=steps) for replica in range(2)]
        self.finish(groups[1], code=-signal.SIGKILL)
        groups[1] = self.start(1, both, steps=steps)
        self.finish(*groups)
        self.assert_holds(groups[0].said(), "another replica group was lost in step", "the step begins anew")
        self.assert_as_undisturbed(expected, 0, 1)
        self.assert_nothing_is_left()


@thorough
class ThoroughReplicasTest(Replicas):
    def test_a_group_with_another_setting_is_refused(self):
        first = self.start(0, steps=ENDLESS)
        self.wait_for_step(2, first)
        other = self.start(1, "--optimizer.lr=0.002", steps=ENDLESS)
        self.finish(other, code=EXIT_CONFIG)
        self.assert_holds(other.said(), "(fault_tolerance.replica_id = 1) cannot train with replica_0", "optimizer.lr is 0.002 here and 0.001 there")
        wider = self.start(1, steps=ENDLESS, ranks=2)
        self.finish(wider, code=EXIT_CONFIG)
        self.assert_holds(wider.said(), "it has 2 ranks, the others have 1")
        step = first.step()
        self.wait_for_step(step + 3, first)

    def test_of_two_groups_with_one_number_the_first_goes_on(self):
        first = self.start(0, steps=ENDLESS)
        self.wait_for_step(2, first)
        twin = self.start(0, "--job.dump_folder", self.folder / "elsewhere", steps=ENDLESS)
        self.finish(twin, code=EXIT_CONFIG)
        self.assert_holds(twin.said(), "(fault_tolerance.replica_id = 0) cannot train with replica_0", "has fault_tolerance.replica_id = 0 too")
        self.wait_for_step(first.step() + 3, first)

    def test_a_spare_takes_the_place_of_a_lost_group(self):
        groups = [self.start(replica, steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(2, *groups)
        spare = self.start(2, steps=ENDLESS)
        self.wait_until(lambda: "waits as a spare: replica_0, replica_1 train" in spare.said(), *groups, spare)
        self.wait_for_step(groups[0].step() + 3, *groups)
        self.assertEqual(spare.step(), 0)
        groups[1].kill()
        self.wait_until(lambda: spare.step() > 0, groups[0], spare)
        self.assert_holds(spare.said(), "over from replica_0", "trains with 2 groups")
        last = groups[0].step() + 3
        self.wait_for_step(last, groups[0], spare)
        self.stop(groups[0], spare)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1, 2)

    def test_spares_take_no_place_of_a_group_that_trains(self):
        """Also not when it has no connection at the moment, and their names come first."""
        def start(replica):
            return self.start(replica, "--fault_tolerance.process_group_timeout_ms=2000", steps=ENDLESS)
        groups = [start(replica) for replica in (8, 9)]
        self.wait_for_step(3, *groups)
        spares = [start(replica) for replica in range(3)]
        self.wait_until(lambda: all("waits as a spare" in spare.said() for spare in spares), *groups, *spares)
        spares[0].process.send_signal(signal.SIGSTOP)  # it is given the place and does not come
        groups[0].kill()
        # unless the lighthouse already knows that it is stopped
        self.wait_until(lambda: "lost another group while connecting the groups" in groups[1].said()
                        or any("over from replica_9" in spare.said() for spare in spares), groups[1])
        self.wait_for_step(groups[1].step() + 3, groups[1])
        spares[0].process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: any("over from replica_9" in spare.said() for spare in spares), groups[1], *spares)
        self.wait_for_step(groups[1].step() + 3, groups[1])
        self.stop(groups[1], *spares)
        self.assert_as_undisturbed(self.undisturbed(groups[1].step() + 1), 8, 9)

    def test_too_few_groups_wait_and_end_at_once(self):
        alone = self.start(0, "--fault_tolerance.min_replica_size=2", steps=ENDLESS)
        self.wait_until(lambda: "waits for other groups: 1 of 2 (fault_tolerance.min_replica_size) are here" in alone.said(), alone)
        self.stop(alone)
        self.assertEqual(alone.step(), 0)
        # the lighthouse itself does not answer
        self.lighthouse.kill()
        self.lighthouse.settings = (2, *self.lighthouse.settings[1:])
        self.lighthouse.start()
        alone = self.start(0, steps=ENDLESS)
        self.wait_until(lambda: "ready after" in alone.said(), alone)
        time.sleep(0.5)  # likely waiting for the answer; before or after, it ends as well
        self.stop(alone)
        self.assertEqual(alone.step(), 0)

    def agent_of(self, group):
        """The process of titan-replica."""
        children = pathlib.Path(f"/proc/{group.process.pid}/task").glob("*/children")
        return next(int(pid) for path in children for pid in path.read_text().split() if "titan-replica" in command_line(pid))

    def test_a_group_below_the_minimum_waits_for_the_lost_one(self):
        groups = [self.start(replica, "--fault_tolerance.min_replica_size=2", steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(3, *groups)
        groups[1].kill()
        self.wait_until(lambda: "waits for other groups: 1 of 2" in groups[0].said(), groups[0])
        step = groups[0].step()
        groups[1] = self.start(1, "--fault_tolerance.min_replica_size=2", steps=ENDLESS)
        self.wait_for_step(step + 3, *groups)
        self.stop(*groups)
        self.assertTrue(all(e["groups"] == 2 for e in groups[0].events() if e["what"] == "commit"))
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)

    def test_the_report_has_the_time_that_a_group_waited(self):
        groups = [self.start(replica, "--fault_tolerance.min_replica_size=2", steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(3, *groups)
        groups[1].kill()
        self.wait_until(lambda: "waits for other groups: 1 of 2" in groups[0].said(), groups[0])
        step, waits_since = groups[0].step(), time.monotonic()
        groups[1] = self.start(1, "--fault_tolerance.min_replica_size=2", steps=ENDLESS)
        self.wait_until(lambda: "ready after" in groups[1].said(), *groups)
        waited = time.monotonic() - waits_since
        self.wait_for_step(step + 3, *groups)
        self.stop(*groups)
        events = lines_of(groups[0].folder / "history.jsonl")
        measured = sum(event["seconds"]["replicas"] for event in events if event["event"] == "steps")
        in_waiting_steps = max(event["seconds"]["replicas"] for event in events if event["event"] == "steps" and event["from"] > 1)
        self.assertGreaterEqual(in_waiting_steps, waited)
        self.assertLessEqual(measured, events[-1]["time"] - events[0]["time"])
        report = titan("report", groups[0].folder, "--out", self.folder / "report.html")
        self.assertEqual(report.returncode, 0, report.stderr)
        shown = re.search(r"waiting for replica groups +(\S.*) \((\d+\.\d) %\)", report.stdout + report.stderr)
        self.assertTrue(shown, report.stdout + report.stderr)
        share = 100 * measured / (events[-1]["time"] - events[0]["time"])
        self.assertAlmostEqual(float(shown[2]), share, delta=0.1)
        line = lines_of(groups[0].folder / "metrics.jsonl")[-1]
        self.assertGreater(line["time_metrics/replicas(s)"], 0)
        self.assertLess(line["time_metrics/replicas(s)"], line["time_metrics/end_to_end(s)"])

    def test_members_change_during_validation_profiling_and_saving(self):
        work = [*CHECKPOINTS, "--checkpoint.async_mode=async", "--validation.enable", "--validation.dataset=jsonl",
                "--validation.dataset_path=./tests/assets/corpus/train.jsonl", "--validation.seq_len=32", "--validation.freq=5", "--validation.steps=4",
                "--profiling.enable_profiling", "--profiling.profile_freq=5"]
        groups = [self.start(replica, *work, steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(3, *groups)
        groups[1].strike("save", signal.SIGKILL, 2000, every=5)
        self.finish(groups[1], code=-signal.SIGKILL)
        groups[1] = self.start(1, *work, steps=ENDLESS)
        self.wait_until(lambda: "trains with 2 groups" in groups[1].said(), *groups)
        self.wait_for_step(groups[0].step() + 6, *groups)
        self.stop(*groups)
        last = groups[0].step() + 5
        self.assert_as_undisturbed(self.undisturbed(last, *work), 0, 1)
        held_out = {line["step"]: line["validation_metrics/loss"] for line in lines_of(self.folder / "undisturbed" / "metrics.jsonl")
                    if "validation_metrics/loss" in line}
        for replica in range(2):
            own = [line for path in (self.out / f"replica_{replica}").rglob("metrics.jsonl") for line in lines_of(path) if "validation_metrics/loss" in line]
            self.assertTrue(own)
            for line in own:
                self.assertAlmostEqual(line["validation_metrics/loss"], held_out[line["step"]], delta=1e-9)
        self.assert_nothing_is_left()

    def test_groups_of_two_sharded_ranks(self):
        groups = [self.start(replica, steps=ENDLESS, ranks=2) for replica in range(2)]
        self.wait_for_step(3, *groups)
        groups[1].strike("backward", rank=1)
        self.wait_until(lambda: not groups[1].is_running(), groups[0])
        groups[1] = self.start(1, steps=ENDLESS, ranks=2)
        self.wait_until(lambda: "trains with 2 groups" in groups[1].said(), *groups)
        self.wait_for_step(groups[0].step() + 3, *groups)
        self.stop(*groups)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)
        self.assert_nothing_is_left()

    def test_rows_that_the_groups_cannot_share_evenly(self):
        uneven = "--training.global_batch_size=7"
        groups = [self.start(replica, uneven, steps=ENDLESS, groups=3) for replica in range(3)]
        self.wait_until(lambda: all("trains with 3 groups" in group.said() for group in groups), *groups)
        self.wait_for_step(groups[0].step() + 20, *groups)  # past a step at which they share positions
        groups[1].strike("sum")
        self.finish(groups[1], code=-signal.SIGKILL)
        self.wait_for_step(groups[0].step() + 3, groups[0], groups[2])
        self.stop(groups[0], groups[2])
        self.assert_holds("".join(group.said() for group in groups), "rows 0 to 2", "rows 3 to 4", "rows 5 to 6", "rows 0 to 3", "rows 4 to 6")
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1, uneven), 0, 1, 2)

    def test_titan_launch_starts_a_group_again(self):
        groups = [self.start(0, steps=ENDLESS), self.start(1, steps=ENDLESS, restarts=3)]
        for restart in range(1, 4):
            self.wait_until(lambda: groups[1].said().count("trains with 2 groups") == restart, *groups)
            groups[1].strike("judge")
            self.wait_until(lambda: groups[1].said().count("ready after") == restart + 1, *groups)
        self.wait_until(lambda: groups[1].said().count("trains with 2 groups") == 4, *groups)
        self.wait_for_step(groups[0].step() + 3, *groups)
        self.stop(*groups)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)

    def test_the_lighthouse_is_killed_and_started_again(self):
        groups = [self.start(replica, steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(3, *groups)
        for _ in range(3):
            self.lighthouse.restart()
            self.wait_for_step(groups[0].step() + 5, *groups)
        self.lighthouse.kill()
        self.wait_until(lambda: "does not answer" in groups[0].said(), *groups)
        groups[1].kill()
        self.lighthouse.start()
        groups[1] = self.start(1, steps=ENDLESS)
        self.wait_until(lambda: "trains with 2 groups" in groups[1].said(), *groups)
        self.wait_for_step(groups[0].step() + 3, *groups)
        self.stop(*groups)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)

    def test_a_death_is_noticed_without_a_timeout(self):
        """Over gloo only the neighbour of the lost group notices; the third group waits for the neighbour."""
        def start(replica):
            return self.start(replica, f"--parallelism.replicas.address=127.0.0.{replica + 1}", "--fault_tolerance.process_group_timeout_ms=3600000",
                              steps=ENDLESS, groups=3)
        groups = [start(replica) for replica in range(3)]
        together = lambda: all(group.events() and group.events()[-1]["groups"] == 3 for group in groups)
        for lost, stage in enumerate(("quorum", "optimizer", "judge", "sum", "backward", "begin")):
            lost %= 3
            self.wait_until(together, *groups)
            groups[lost].strike(stage)
            self.finish(groups[lost], code=-signal.SIGKILL)
            others = [group for group in groups if group.replica != lost]
            self.wait_for_step(max(group.step() for group in others) + 3, *others)
            groups[lost] = start(lost)
        self.wait_until(together, *groups)
        self.stop(*groups)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1, 2)

    def test_the_agent_of_a_group_is_killed(self):
        groups = [self.start(replica, steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(3, *groups)
        time.sleep(6)  # an agent that ends within its first 5 s is not started again
        for group in groups:
            os.kill(self.agent_of(group), signal.SIGKILL)
            self.wait_until(lambda group=group: "starting it again as" in group.said(), *groups)
            self.wait_for_step(group.step() + 5, *groups)
        self.wait_until(lambda: groups[0].events()[-1]["groups"] == groups[1].events()[-1]["groups"] == 2, *groups)
        self.stop(*groups)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)
        self.assert_nothing_is_left()

    def test_the_lighthouse_hangs_longer_than_a_request_waits(self):
        groups = [self.start(replica, steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(3, *groups)
        self.lighthouse.stop()
        self.wait_until(lambda: all("because it may still list" in group.said() for group in groups), *groups)
        self.lighthouse.go_on()
        self.wait_for_step(groups[0].step() + 5, *groups)
        self.wait_until(lambda: groups[0].events()[-1]["groups"] == groups[1].events()[-1]["groups"] == 2, *groups)
        self.stop(*groups)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)

    def test_a_group_whose_clock_is_wrong(self):
        first = self.start(0, steps=ENDLESS)
        self.wait_for_step(2, first)
        for days in (-400, 400):
            skewed = self.start(1, steps=ENDLESS, LD_PRELOAD=os.environ["TITAN_CLOCK_SKEW_LIBRARY"], TITAN_CLOCK_SKEW=str(days * 86400))
            self.wait_until(lambda: "trains with 2 groups" in skewed.said(), first, skewed)
            self.wait_for_step(first.step() + 5, first, skewed)
            skewed.strike("backward")
            self.finish(skewed, code=-signal.SIGKILL)
            self.assertNotIn(time.strftime("%Y-"), skewed.said(), "the clock was not wrong")
        self.wait_for_step(first.step() + 3, first)
        self.stop(first)
        self.assert_as_undisturbed(self.undisturbed(first.step() + 1), 0, 1)


@thorough
class PatientLighthouseTest(Replicas):
    """A busy machine does not make a group look dead."""

    LIGHTHOUSE = {"min_replicas": 1, "join_timeout_ms": 10000, "heartbeat_timeout_ms": 10000}

    def test_members_that_are_not_titans_are_ignored(self):
        groups = [self.start(replica, steps=ENDLESS) for replica in range(2)]
        self.wait_for_step(3, *groups)
        with subprocess.Popen([sys.executable, str(MANAGER), self.lighthouse.url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                              text=True) as manager:
            try:
                seen = [json.loads(manager.stdout.readline())["members"] for _ in range(10)]
                self.assertIn(3, seen, "torchft's manager and both groups were in one quorum")
                self.wait_for_step(groups[0].step() + 5, *groups)
            finally:
                manager.kill()
        self.wait_for_step(groups[0].step() + 5, *groups)
        self.stop(*groups)
        for group in groups:
            self.assert_holds(group.said(), "ignores 'torchft_manager", "no replica group of Titan")
            self.assertEqual(group.said().count("trains with 2 groups"), 1)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)


@thorough
class GhostTest(Replicas):
    LIGHTHOUSE = {"min_replicas": 1, "join_timeout_ms": 60000, "heartbeat_timeout_ms": 10000}

    def test_a_group_comes_back_while_the_lighthouse_lists_its_last_request(self):
        """The lighthouse keeps the request of a group that was killed while it waited for the others."""
        groups = [self.start(replica, steps=ENDLESS) for replica in range(2)]
        self.wait_until(lambda: all("trains with 2 groups" in group.said() for group in groups), *groups)
        groups[0].strike("quorum", signal.SIGSTOP)
        self.wait_until(lambda: self.is_stopped(groups[0]), *groups)
        step = groups[0].step()
        self.wait_until(lambda: groups[1].step() == step, groups[1])
        time.sleep(0.3)  # it asks for the members of the next step
        groups[1].kill()
        groups[1] = self.start(1, steps=ENDLESS)
        self.wait_until(lambda: "ready after" in groups[1].said(), groups[1])
        time.sleep(0.5)  # and so does the new one
        groups[0].process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: "trains with 2 groups" in groups[1].said(), *groups)
        self.wait_for_step(groups[0].step() + 3, *groups)
        self.stop(*groups)
        self.assert_as_undisturbed(self.undisturbed(groups[0].step() + 1), 0, 1)


if __name__ == "__main__":
    main()
