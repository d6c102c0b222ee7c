"""Pipelines: metrics and held-out loss are those of one rank, schedules that add in the same order give the same bits, problems
are reported before anything starts, and a rank that fails in mid-schedule ends the others, which report their actions."""

import concurrent.futures
import re

from checkpoint_case import SMALL
from failing_rank_test import FAULTS, NEVER, REPEATS, TIMEOUT, Ranks, processes_with
from harness import HANG, ROOT, main, metrics, thorough, titan
from validation_test import VALIDATION, ValidationCase

P = "--parallelism."
LOSS, NORM = "loss_metrics/global_avg_loss", "grad_norm"
# Schedules that sum over microbatches in order, from the first to the last.
ASCENDING = ("GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")
# In words, then as in a schedule table.
ACTION = (r"(?:forward|backward|input gradient|weight gradients|(?:sending|receiving) the (?:input|output)(?: gradient)?)"
          r"(?: of stage \d), microbatch \d \(\d(?:F|B|I|W|SEND_F|RECV_F|SEND_B|RECV_B)\d\)")


def pipeline(ranks, schedule="1F1B", *more):
    return [P + "pipeline_parallel_degree", ranks, P + "pipeline_parallel_schedule", schedule, *more]


class MetricsTest(ValidationCase):
    """Metrics of a run."""

    def setUp(self):
        super().setUp()
        self.recipe = [*SMALL, "--checkpoint.no_enable", "--training.global_batch_size", "8", "--training.local_batch_size", "8"]

    def run_in(self, name, ranks, *arguments):
        self.out = self.folder / name.replace(" ", "_")
        return self.run_ranks(ranks, *arguments)

    def test_rank_0_says_the_loss_once_and_what_is_counted_is_counted_once(self):
        self.run_in("one", 1, "--training.steps", "3")
        alone = metrics(self.out)
        run = self.run_in("four", 4, *pipeline(4), "--training.steps", "3")
        together = metrics(self.out)
        self.assertEqual(len(re.findall(r"(?m)^step:", run.stdout)), 3)
        self.assertEqual(sorted(path.name for path in self.out.glob("metrics*")), ["metrics.jsonl"])
        for mine, one in zip(together, alone, strict=True):
            for name in (LOSS, "loss_metrics/global_max_loss", NORM):
                self.assertAlmostEqual(mine[name] / one[name], 1, delta=1e-5, msg=name)
            for name in ("step", "n_tokens_seen", "lr"):
                self.assertEqual(mine[name], one[name], name)

    def test_schedules_that_add_in_one_order_give_the_same_losses_to_the_bit(self):
        # without clipping, the norm, whose summation order differs between stages, does not affect
        # the weights
        flags = ["--training.steps", "6", "--training.max_norm", "1e30", "--debug.deterministic"]
        found = {}
        for name in ASCENDING:
            self.run_in(name, 2, *pipeline(2, name), *flags)
            found[name] = [line[LOSS] for line in metrics(self.out)]
        for name, losses in found.items():
            self.assertEqual(losses, found["GPipe"], name)
        self.assertEqual(len(set(found["GPipe"])), 6)

    @thorough
    def test_held_out_loss_is_that_of_one_rank(self):
        """Validation batches with as many rows as the microbatches of a step, with fewer and with more."""
        flags = [*VALIDATION, *self.held_out(23), "--training.steps", "4"]

        def found(name, ranks, rows, more):
            case = self.beside(name)
            case.run_in(name, ranks, *flags, *more, "--validation.local_batch_size", rows)
            self.assertEqual(sorted(case.validation()), [1, 2, 4], "after step 1 and every freq steps")
            return case.validation()

        layouts = {
                "less": (2, 4, 4, pipeline(2)),
                "as many": (2, 8, 8, pipeline(2, "Interleaved1F1B")),
                "more": (2, 12, 12, pipeline(2, "ZBVZeroBubble")),
                "four ranks": (4, 4, 4, pipeline(4)),
                "with fsdp 2": (4, 4, 2, [*pipeline(2), "--training.local_batch_size", "4"]),
                "with tp 2": (4, 4, 4, [*pipeline(2), P + "tensor_parallel_degree", "2"])}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            alone = {rows: pool.submit(found, f"one {rows}", 1, rows, []) for rows in (4, 8, 12)}
            runs = {name: pool.submit(found, name, ranks, rows, more) for name, (ranks, _, rows, more) in layouts.items()}
        alone = {rows: run.result() for rows, run in alone.items()}
        for name, (_, all_rows, _, _) in layouts.items():
            for step, values in runs[name].result().items():
                for figure in ("loss", "bits_per_byte"):
                    self.assertAlmostEqual(values[figure], alone[all_rows][step][figure], delta=2e-5, msg=f"{name}, step {step}")
        self.assertLess(alone[4][4]["loss"], alone[4][1]["loss"])

    def test_validation_changes_nothing(self):
        self.run_in("without", 2, *pipeline(2, "InterleavedZeroBubble"), "--training.steps", "4")
        without = [line[LOSS] for line in metrics(self.out)]
        self.run_in("with", 2, *pipeline(2, "InterleavedZeroBubble"), "--training.steps", "4", *VALIDATION, *self.held_out(8),
                    "--validation.local_batch_size", 4)
        self.assertEqual([line[LOSS] for line in metrics(self.out) if LOSS in line], without)


class RefusedTest(ValidationCase):
    """All problems are found before anything starts. Simulated ranks run the same checks."""

    SIZES = ["--model.n_layers", "2", "--training.local_batch_size", "8", "--training.seq_len", "64"]

    def refused(self, ranks, *arguments):
        run = titan("train", "--job.config_file", ROOT / "train_configs/debug_model.toml", "--comm.mode", "fake_backend",
                    "--world-size", ranks, "--rank", ranks - 1, *self.SIZES, *map(str, arguments), cwd=self.folder,
                    timeout=HANG)
        self.assertEqual(run.returncode, 2, run.stderr)
        return run.stderr

    def setUp(self):
        super().setUp()
        for name in ("tests", "train_configs"):  # the job's paths are relative
            (self.folder / name).symlink_to(ROOT / name)

    def test_a_schedule_there_is_not(self):
        self.assert_holds(self.refused(2, *pipeline(2, "ZBVZeroBuble")), "unknown pipeline_schedule 'ZBVZeroBuble'",
                          "did you mean 'ZBVZeroBubble'?")

    def test_schedules_that_do_not_fit_the_stages(self):
        one = P + "pipeline_parallel_layers_per_stage"
        self.assert_holds(self.refused(2, *pipeline(2, "1F1B"), one, 1), "1F1B", "exactly 1 stage per rank, but there are 2")
        self.assert_holds(self.refused(2, *pipeline(2, "Interleaved1F1B"), one, 2), "Interleaved1F1B",
                          "at least 2 stages per rank, but there are 1")
        self.assert_holds(self.refused(2, *pipeline(2, "1F1B"), one, 2, "--model.n_layers", 4),
                          "3 stages, which is not a multiple of pipeline_parallel_degree = 2")

    def test_too_few_microbatches(self):
        self.assert_holds(self.refused(4, *pipeline(4), "--training.local_batch_size", 2), "1F1B",
                          "2 microbatches for 4 stages", "raise training.local_batch_size")

    def test_a_microbatch_that_does_not_divide(self):
        self.assert_holds(self.refused(2, *pipeline(2), P + "pipeline_parallel_microbatch_size", 3),
                          "pipeline_parallel_microbatch_size = 3 does not divide training.local_batch_size = 8")

    def test_more_stages_than_layers(self):
        self.assert_holds(self.refused(4, *pipeline(4, "Interleaved1F1B")), "8 stages", "the model has 2")

    def test_modules_that_are_not_those_of_the_model_are_listed_together(self):
        text = self.refused(2, *pipeline(2), P + "module_fqns_per_model_part", "tok_embeddings,layers.1,layers.7", "norm,attention")
        self.assert_holds(text, "stage 0 names 'layers.7', which the model does not have",
                          "stage 1 names 'attention', which the model does not have", "no stage names layer 'layers.0'")
        text = self.refused(2, *pipeline(2), P + "module_fqns_per_model_part", "tok_embeddings,layers.1", "layers.0,norm,output")
        self.assert_holds(text, "layers.1", "layers.0", "before")

    def test_parts_that_do_not_divide_by_the_ranks(self):
        text = self.refused(2, *pipeline(2), P + "module_fqns_per_model_part", "tok_embeddings", "layers.0,layers.1", "norm,output")
        self.assert_holds(text, "3 stages, which is not a multiple of pipeline_parallel_degree = 2")

    def csv(self, text, *arguments):
        return self.refused(2, P + "pipeline_parallel_degree", 2, P + "pipeline_parallel_schedule_csv",
                            self.write("table.csv", text), *arguments)

    def test_tables(self):
        two = ["--training.local_batch_size", 2]
        sound = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
        self.assert_holds(self.csv(sound), "needs 2 microbatches", "but there are 8")
        self.assert_holds(self.csv("0F0,0F1,0X0,0B1\n1F0,1B0,1F1,1B1\n", *two), "table.csv:1:3", "0X0")
        self.assert_holds(self.csv("0F0,0SEND_F0,0B0\n1F0,1B0\n", *two), "table.csv:1:2", "SEND_F")
        self.assert_holds(self.csv("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n", *two), "0B1")
        self.assert_holds(self.csv("0B0,0F0,0F1,0B1\n1F0,1B0,1F1,1B1\n", *two), "0B0")
        self.assert_holds(self.refused(2, P + "pipeline_parallel_degree", 2, P + "pipeline_parallel_schedule_csv", "nowhere.csv"),
                          "nowhere.csv")

    def test_real_ranks_refuse_too_and_write_nothing(self):
        self.recipe = [*SMALL, "--checkpoint.no_enable"]
        run = self.run_ranks(2, *pipeline(2, "1f1bb"), code=2)
        self.assert_holds(run.stderr, "error: unknown pipeline_schedule '1f1bb'", "did you mean '1F1B'?")
        self.assert_nothing_was_written()


class FaultTest(Ranks):
    """Four ranks, each with one stage, started without a launcher. Repeated with other stages, forwards and backwards."""

    RANKS, MICROBATCHES = 4, 8
    BESIDE = 3  # repeats at a time, because each mostly waits

    def start_one(self, number, kind, faulty, when):
        """A separate case, which waits for its ranks."""
        case = self.beside(f"{kind}_{number:03}")
        case.start("--training.steps", "1000000", "--plugins.paths", str(FAULTS), "--parallelism.further", "test/fault",
                   "--model.n_layers", "2", "--model.dim", "64", "--training.local_batch_size", str(self.MICROBATCHES),
                   *map(str, pipeline(self.RANKS)), ranks=self.RANKS,
                   per_rank=lambda rank: [
                       f"--parallelism.test/fault.rank={faulty}", f"--parallelism.test/fault.kind={kind}",
                       # microbatch 1 of step 2
                       f"--parallelism.test/fault.step={self.MICROBATCHES + 2}", f"--parallelism.test/fault.when={when}"],
                   timeout=TIMEOUT if kind == "hang" else NEVER)
        return case

    def judge(self, case, kind, faulty, when):
        case.wait_for_the_first_step()
        results = case.ends(within=HANG)
        with self.subTest(kind=kind, faulty=faulty, when=when):
            for rank, (code, err) in enumerate(results):
                self.assertNotEqual(code, 0, err)
                if rank == faulty and kind == "kill":
                    continue
                self.assertIn("error:", err)
                self.assertRegex(err, ACTION, f"rank {rank}")
                if rank != faulty:  # the store may end with its host before this rank could ask
                    self.assertRegex(err, rf"rank {faulty}\b|the store is gone")
            if kind == "error":
                self.assertIn(f"in {when} of stage {faulty}, microbatch 1 ({faulty}{when[0].upper()}1)", results[faulty][1])
                self.assertIn("a fault was asked for", results[faulty][1])
                for rank in set(range(self.RANKS)) - {faulty}:
                    self.assertIn(f"{when} of stage {faulty}, microbatch 1 ({faulty}{when[0].upper()}1)", results[rank][1])
        self.assertEqual(processes_with(str(case.out)), [])

    def fail_often(self, kind):
        drills = [(kind, i % self.RANKS, ("forward", "backward")[i // self.RANKS % 2]) for i in range(REPEATS)]
        for begin in range(0, REPEATS, self.BESIDE):
            some = drills[begin:begin + self.BESIDE]
            for drill, case in zip(some, [self.start_one(begin + i, *drill) for i, drill in enumerate(some)]):
                self.judge(case, *drill)

    @thorough
    def test_a_rank_that_is_killed(self):
        self.fail_often("kill")

    @thorough
    def test_a_rank_that_raises_an_error(self):
        self.fail_often("error")

    @thorough
    def test_a_rank_that_hangs(self):
        self.fail_often("hang")


if __name__ == "__main__":
    main()
