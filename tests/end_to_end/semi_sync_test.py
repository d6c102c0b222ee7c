"""Semi-synchronous training over replica groups, with torchft's lighthouse: outer steps against NumPy, LocalSGD against
synchronous training, groups that fail, and resumed runs."""

import json
import shutil
import signal
import sys
import unittest

import numpy

import lighthouse
from harness import ROOT, Case, main, titan
from semi_sync_case import JOB, Groups

sys.path.insert(0, str(ROOT / "tests/referee"))
import outer_step  # noqa: E402

LOSS, OWN_LOSS = "loss_metrics/global_avg_loss", "loss_metrics/group_avg_loss"
MODULES = [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]]
LATE = 100  # steps until a synchronisation that no test reaches


def diloco(sync_steps, fragments=1, delay=0, alpha=0.0):
    return ("--fault_tolerance.semi_sync_method=diloco", f"--fault_tolerance.sync_steps={sync_steps}",
            f"--fault_tolerance.num_fragments={fragments}", f"--fault_tolerance.fragment_sync_delay={delay}",
            f"--fault_tolerance.fragment_update_alpha={alpha}")


def local_sgd(sync_steps):
    return ("--fault_tolerance.semi_sync_method=local_sgd", f"--fault_tolerance.sync_steps={sync_steps}")


@unittest.skipUnless(lighthouse.extension(), lighthouse.MISSING)
class SemiSync(Case):
    def groups(self, name, *options, **settings):
        groups = Groups(self.folder / name, *options, **settings)
        groups.__enter__()
        self.addCleanup(groups.__exit__)
        return groups

    def initial(self, run):
        """Both groups begin with the same common weights."""
        prefix = "optim.semi_sync_common."
        both = [{name[len(prefix):]: value for name, value in outer_step.stored(run.step(r, 1)).items() if name.startswith(prefix)}
                for r in (0, 1)]
        self.assertEqual(outer_step.distance(*both), 0)
        return both[0]

    def equal_bits(self, one, other):
        one, other = outer_step.stored(one), outer_step.stored(other)
        self.assertEqual(one.keys(), other.keys())
        for name, value in one.items():
            if name.startswith("optim.semi_sync_counters."):  # the first one tells apart what the groups have met for
                value, other[name] = value[1:], other[name][1:]
            self.assertEqual(value.tobytes(), other[name].tobytes(), name)

    def test_two_outer_steps_equal_numpy(self):
        run = self.groups("run", *diloco(2), "--training.steps=4").run()
        alone = self.groups("alone", *diloco(LATE), "--training.steps=2").run()
        later = self.groups("later", *diloco(LATE), "--training.steps=4").copy_until(run, 2).run()
        common, momentum = self.initial(run), {}
        for first, last, before in ((0, 2, alone), (2, 4, later)):
            tokens = [run.tokens(r, first, last) for r in (0, 1)]
            self.assertNotEqual(*tokens, "groups of equal size would not show the weights")
            own = [outer_step.weights(before.step(r, last)) for r in (0, 1)]
            self.assertGreater(outer_step.distance(*own), 1e-5, "the groups have trained on the same rows")
            common = outer_step.diloco(common, own, tokens, momentum, list(common))
            for r in (0, 1):
                self.assertLess(outer_step.distance(outer_step.weights(run.step(r, last)), common), 1e-12)
        self.equal_weights(run, 4)

    def equal_weights(self, run, step):
        self.assertEqual(outer_step.distance(outer_step.weights(run.step(0, step)), outer_step.weights(run.step(1, step))), 0)

    def test_streaming_outer_steps_equal_numpy(self):
        options = {"fragments": 2, "delay": 1, "alpha": 0.25}
        run = self.groups("run", *diloco(4, **options), "--training.steps=4").run()
        alone = self.groups("alone", *diloco(LATE, **options), "--training.steps=2").run()
        later = self.groups("later", *diloco(LATE, **options), "--training.steps=4").copy_until(run, 2).run()
        common = self.initial(run)
        fragments = [[n for n in common if any(n.startswith(m + ".") for m in modules)] for modules in MODULES]
        self.assertEqual(sorted(sum(fragments, [])), sorted(common))
        for names, sent, last, before in ((fragments[0], 1, 2, alone), (fragments[1], 3, 4, later)):
            tokens = [run.tokens(r, 0, sent) for r in (0, 1)]
            own = [outer_step.weights(run.step(r, sent)) for r in (0, 1)]
            expected = outer_step.diloco(common, own, tokens, {}, names)
            for r in (0, 1):
                found, last_own = outer_step.weights(run.step(r, last)), outer_step.weights(before.step(r, last))
                self.assertLess(outer_step.distance(found, outer_step.mixed(expected, last_own, 0.25)), 1e-12)
                others = [name for name in common if name not in names]
                self.assertEqual(max(numpy.abs(found[n] - last_own[n]).max() for n in others), 0, "the other fragment has changed")

    def test_keys_that_do_not_fit_are_refused(self):
        job = self.write("job.toml", JOB)
        for flags, texts in (
            ((*local_sgd(2), "--fault_tolerance.num_fragments=2", "--fault_tolerance.fragment_sync_delay=1",
              "--fault_tolerance.fragment_update_alpha=0.5", "--parallelism.semi_sync.quantized_type=float8_e4m3"),
             ("it has no fragments", "has no fault_tolerance.fragment_sync_delay", "has no fault_tolerance.fragment_update_alpha",
              "quantized_type has no effect without fault_tolerance.should_quantize")),
            (diloco(5, fragments=2), ("sync_steps = 5 is not a multiple of the number of fragments, 2",)),
            (diloco(4, fragments=2, delay=2), ("fragment_sync_delay = 2 is not less than", "at most 1")),
        ):
            run = titan("train", "--job.config_file", job, "--fault_tolerance.enable", *flags, "--dry-run")
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, *texts)

    def test_quantised_outer_steps_equal_numpy(self):
        alone = self.groups("alone", *diloco(LATE), "--training.steps=2").run()
        own = [outer_step.weights(alone.step(r, 2)) for r in (0, 1)]
        for kind, average in outer_step.QUANTIZED.items():
            with self.subTest(kind):
                run = self.groups(kind, *diloco(2), "--fault_tolerance.should_quantize", f"--parallelism.semi_sync.quantized_type={kind}",
                                  "--training.steps=2").run()
                common, tokens = self.initial(run), [run.tokens(r, 0, 2) for r in (0, 1)]
                found = outer_step.weights(run.step(0, 2))
                self.equal_weights(run, 2)
                expected = outer_step.diloco(common, own, tokens, {}, list(common), average=average)
                self.assertLess(outer_step.distance(found, expected), 1e-12)
                exact = outer_step.diloco(common, own, tokens, {}, list(common))
                self.assertGreater(outer_step.distance(found, exact), 1e-9, "nothing was rounded")

    def test_local_sgd_in_each_step_is_synchronous_training(self):
        options = ("--training.max_norm=1e9", "--training.steps=6")
        job = JOB.replace('name = "AdamW"\nlr = 1e-3', 'name = "SGD"\nlr = 0.1')
        run = self.groups("run", *local_sgd(1), *options, "--fault_tolerance.group_size=3", num=3, job=job).run()
        plain = self.groups("plain", *options, num=1, enabled=False, job=job).run()
        for r in (0, 1, 2):
            for one, other in zip(run.metrics(r), plain.metrics(None), strict=True):
                self.assertLess(abs(one[LOSS] - other[LOSS]), 1e-9)
                self.assertNotEqual(one[OWN_LOSS], one[LOSS])
        expected = outer_step.weights(plain.folder / "checkpoint" / "step-6")
        self.assertLess(outer_step.distance(outer_step.weights(run.step(0, 6)), expected), 1e-9)
        self.equal_weights(run, 6)
        self.assertEqual(sorted(run.tokens(r, 0, 6) for r in (0, 1, 2)), [6 * 32, 12 * 32, 12 * 32])

    def test_a_group_without_checkpoints_takes_an_exchange_in_flight_over(self):
        options = (*diloco(8, fragments=2, delay=2), "--fault_tolerance.group_size=3")
        run = self.groups("run", *options, num=3).run()
        again = self.groups("again", *options, "--training.steps=12", num=3).copy_until(run, 7)  # sent after step 6, due after step 8
        shutil.rmtree(again.own_folder(2))
        again.run()
        self.assertRegex(again.log(2), "takes step 7 over from")
        # the group that took over weighs nothing: the common weights are those of the other two
        two = self.groups("two", *options, num=2).copy_until(run, 7).run()
        prefix = "optim.semi_sync_common."
        found, *others, expected = ({name: value for name, value in outer_step.stored(step).items() if name.startswith(prefix)}
                                    for step in (*(again.step(r, 8) for r in (0, 1, 2)), two.step(0, 8)))
        for other in others:
            self.assertEqual(outer_step.distance(found, other), 0)
        self.assertLess(outer_step.distance(found, expected), 1e-15)

    def test_groups_that_have_trained_apart_do_not_average(self):
        both = self.groups("both", *local_sgd(4), "--training.steps=12")
        for r in (0, 1):
            apart = self.groups(f"apart_{r}", *local_sgd(4), "--training.steps=3", num=1)
            apart.start(r)
            apart.finish(r)
            shutil.copytree(apart.step(r, 3), both.step(r, 3))
        both.run()
        self.assertIn("takes step 3 over from", both.log(0) + both.log(1))
        self.equal_weights(both, 12)

    def test_resumed_groups_continue_bitwise(self):
        for name, options in (("local_sgd", local_sgd(3)), ("diloco", diloco(6, fragments=2, delay=2, alpha=0.5))):
            run = self.groups(name, *options).run()
            if name == "diloco":  # the weights of the exchange are those at its start
                for r in (0, 1):
                    counters = outer_step.stored(run.step(r, 5))["optim.semi_sync_counters.layers.1.attention.wq.weight"]
                    self.assertEqual(counters[1:].tolist(), [1, 3, 1, run.tokens(r, 0, 4)])
            for step in (4, 5):  # DiLoCo: an exchange is in flight at 4 and 5
                again = self.groups(f"{name}_{step}", *options).copy_until(run, step).run()
                for r in (0, 1):
                    self.equal_bits(run.step(r, 8), again.step(r, 8))
                    found = {line["step"]: line[OWN_LOSS] for line in again.metrics(r)}
                    self.assertEqual(found, {line["step"]: line[OWN_LOSS] for line in run.metrics(r) if line["step"] > step})

    def test_a_group_that_dies_between_meetings_costs_nothing_until_then(self):
        run = self.groups("run", *local_sgd(120), "--training.steps=240", "--checkpoint.interval=120")  # long enough to be killed in time
        run.start(0)
        run.start(1)
        run.wait_for_step(1, 5)
        run.kill(1)
        run.wait_for_step(0, 119)  # no other group is there
        run.start(1)  # joins at the meeting
        run.finish(0)
        run.finish(1)
        self.assertEqual([line["step"] for line in run.metrics(0)], list(range(1, 241)), "a step was lost or repeated")
        self.assertNotIn("did not synchronise", run.log(0))
        self.assertIn("takes step 120 over from", run.log(1))
        self.equal_weights(run, 240)

    def test_a_group_that_dies_in_an_exchange(self):
        options = diloco(120, delay=110)  # long enough to be killed in time
        run = self.groups("run", *options, "--training.steps=140", "--checkpoint.interval=120")
        run.start(0)
        run.start(1)
        run.wait_for_step(0, 15)
        run.wait_for_step(1, 15)  # the exchange began after step 10
        run.kill(1)
        run.needs_groups(1)
        run.finish(0)
        self.assertIn("did not synchronise after step 120", run.log(0))
        self.assertEqual([line["step"] for line in run.metrics(0)], list(range(1, 141)))
        tensors = outer_step.stored(run.step(0, 120))
        prefix = "optim.semi_sync_common."
        for name, value in tensors.items():
            if name.startswith(prefix):
                self.assertTrue((tensors[name[len(prefix):]] == value).all(), "the group did not return to the common weights")

    def test_a_stopped_group_takes_over_at_its_next_synchronisation(self):
        for name, options in (("local_sgd", local_sgd(20)), ("diloco", diloco(20, delay=5))):
            run = self.groups(name, *options, "--training.steps=100", "--checkpoint.interval=100")
            run.start(0)
            run.start(1)
            run.wait_for_step(0, 3)
            run.wait_for_step(1, 3)
            run.processes[1].send_signal(signal.SIGSTOP)
            run.needs_groups(1)
            run.wait_for_step(0, 45)  # after two synchronisations without it
            run.processes[1].send_signal(signal.SIGCONT)
            run.finish(0)
            run.finish(1)
            self.assertRegex(run.log(1), r"takes step (60|80|55|75|95) over from")
            self.assertEqual([line["step"] for line in run.metrics(0)], list(range(1, 101)))
            self.equal_weights(run, 100)

    def test_groups_of_two_ranks(self):
        options = (*diloco(4, fragments=2, delay=1, alpha=0.25), "--training.global_batch_size=8")
        one = self.groups("one", *options).run()
        for name, layout in (("fsdp", ["--parallelism.data_parallel_shard_degree=2"]),
                             ("pipeline", ["--parallelism.pipeline_parallel_degree=2", "--training.local_batch_size=2"])):
            two = self.groups(name, *options, *layout, ranks=2).run()
            for r in (0, 1):
                expected = outer_step.weights(one.step(r, 8))
                self.assertLess(outer_step.distance(outer_step.weights(two.step(r, 8)), expected), 1e-12, name)

    def test_named_fragments_are_those_of_the_automatic_split(self):
        automatic = self.groups("automatic", *diloco(2, fragments=2), "--training.steps=2").run()
        names = "--fault_tolerance.module_fqns_per_model_fragment=" + json.dumps(MODULES)
        named = self.groups("named", *diloco(2), names, "--training.steps=2").run()
        for r in (0, 1):
            self.equal_bits(named.step(r, 2), automatic.step(r, 2))

    def test_refusals(self):
        run = self.groups("run", *diloco(2), num=1)
        for option, said in (("--fault_tolerance.num_fragments=3", "not a multiple of the number of fragments"),
                             ("--fault_tolerance.fragment_sync_delay=2", "at most 1"),
                             ('--fault_tolerance.module_fqns_per_model_fragment=[["layers"], ["layers.1", "x"]]', "in no fragment")):
            self.assertNotEqual(run.start(0, option).wait(), 0)
            self.assertIn(said, run.log(0))
        self.assertIn("names 'x', which the model does not have", run.log(0))
        self.assertIn("is in the fragments 0 and 1", run.log(0))


if __name__ == "__main__":
    main()
