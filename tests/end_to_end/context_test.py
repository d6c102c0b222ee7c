"""Context parallelism: losses, held-out losses and documents are those of one rank for every way of exchanging keys;
lengths that cannot be sharded are reported before anything starts; a rank that fails ends the others; and the memory of
activations falls with the ranks."""

import json
import re

from checkpoint_case import SMALL
from failing_rank_test import FAULTS, NEVER, TIMEOUT, Ranks, processes_with
from harness import HANG, ROOT, losses, main, metrics, thorough, titan
from validation_test import CORPUS, NEAR, VALIDATION, ValidationCase, texts_of

P = "--parallelism."
LOSS, NORM = "loss_metrics/global_avg_loss", "grad_norm"
RING = [P + "context_parallel_rotate_method", "alltoall"]
UNBALANCED = [P + "context_parallel_load_balancer", "None"]


def context(ranks, *more):
    return [P + "context_parallel_degree", ranks, *more]


class TrainingTest(ValidationCase):
    def setUp(self):
        super().setUp()
        self.recipe = [*SMALL, "--checkpoint.no_enable", "--training.local_batch_size", "4"]

    def run_in(self, name, ranks, *arguments, **options):
        self.out = self.folder / name.replace(" ", "_")
        return self.run_ranks(ranks, *arguments, **options)

    def test_what_a_run_says_is_what_one_rank_says(self):
        self.run_in("one", 1, "--training.steps", "3")
        alone = metrics(self.out)
        run = self.run_in("two", 2, *context(2), "--training.steps", "3")
        self.assertEqual(len(re.findall(r"(?m)^step:", run.stdout)), 3)
        for mine, one in zip(metrics(self.out), alone, strict=True):
            for name in (LOSS, "loss_metrics/global_max_loss", NORM):
                self.assertAlmostEqual(mine[name] / one[name], 1, delta=1e-5, msg=name)
            for name in ("step", "n_tokens_seen", "lr"):
                self.assertEqual(mine[name], one[name], name)

    @thorough
    def test_held_out_loss_is_that_of_one_rank(self):
        few = self.held_out(23)
        seen = {}
        for name, (ranks, rows, more) in {
                "one": (1, 4, []),
                "all-gather": (2, 4, context(2)),
                "ring": (2, 4, context(2, *RING)),
                "ring of 4": (4, 4, context(4, *RING)),
                "unbalanced": (2, 4, context(2, *UNBALANCED)),
                "with fsdp 2": (4, 2, [*context(2), "--training.local_batch_size", "2"]),
                "with pp 2": (4, 4, [*context(2), P + "pipeline_parallel_degree", "2"])}.items():
            self.run_in(name, ranks, "--training.steps", "4", *VALIDATION, *few, "--validation.local_batch_size", rows, *more)
            seen[name] = self.validation()
            self.assertEqual(sorted(seen[name]), [1, 2, 4], "after step 1 and every freq steps")
        for name, by_step in seen.items():
            for step, values in by_step.items():
                for figure in ("loss", "bits_per_byte"):
                    self.assertAlmostEqual(values[figure], seen["one"][step][figure], delta=2e-5, msg=f"{name}, step {step}")

    def test_documents_stay_apart_and_cuts_need_not_fall_on_their_ends(self):
        """Documents have odd lengths, so that hardly any document ends at a rank's border. The losses of one rank are
        compared with those of transformers elsewhere."""
        short = self.folder / "short.jsonl"
        short.write_text("".join(json.dumps({"text": " ".join(text.split()[:3 + 5 * number % 17])}) + "\n"
                                 for number, text in enumerate(texts_of(CORPUS / "train.jsonl")[:400])))
        apart = ["--training.dataset_path", short, "--data.isolate_documents", "--data.no_labels_cross_documents"]
        found = {}
        for name, (ranks, more) in {"one": (1, []), "all-gather": (2, context(2)), "ring": (2, context(2, *RING)),
                                    "ring of 4, unbalanced": (4, context(4, *RING, *UNBALANCED)),
                                    "with tp 2": (4, context(2, P + "tensor_parallel_degree", "2"))}.items():
            self.run_in(name, ranks, "--training.steps", "3", *apart, *more)
            found[name] = losses(self.out)
        for name, values in found.items():
            for mine, theirs in zip(values, found["one"], strict=True):
                self.assertAlmostEqual(mine, theirs, delta=NEAR, msg=name)
        self.run_in("crossing", 2, "--training.steps", "3", *context(2), "--training.dataset_path", short)
        self.assertGreater(abs(losses(self.out)[0] - found["one"][0]), 10 * NEAR, "the default does see other documents")

    def test_a_length_that_cannot_be_cut(self):
        run = self.run_in("odd", 2, *context(2), "--training.seq_len", "62", code=2)
        self.assert_holds(run.stderr, "training.seq_len = 62", "nearest: 60 or 64")
        self.assert_nothing_was_written()
        run = self.run_in("odd validation", 2, *context(2), *VALIDATION, *self.held_out(8), "--validation.seq_len", "62", code=2)
        self.assert_holds(run.stderr, "validation.seq_len = 62", "nearest: 60 or 64")
        self.assert_nothing_was_written()

    def test_balancing_there_is_not(self):
        run = self.run_in("unknown", 2, *context(2), P + "context_parallel_load_balancer", "tailhead", code=2)
        self.assert_holds(run.stderr, "context_parallel_load_balancer", "tailhead", "headtail")
        run = self.run_in("rotate", 2, *context(2), P + "context_parallel_rotate_method", "ring", code=2)
        self.assert_holds(run.stderr, "context_parallel_rotate_method", "allgather", "alltoall")


class FaultTest(Ranks):
    @thorough
    def test_a_rank_that_fails_in_the_ring_is_named_by_the_other(self):
        for kind in ("kill", "error", "hang"):
            with self.subTest(kind):
                self.start("--training.steps", "1000000", "--plugins.paths", str(FAULTS), "--parallelism.further", "test/fault",
                           *map(str, context(2, *RING)), per_rank=lambda rank: [
                               "--parallelism.test/fault.rank=1", f"--parallelism.test/fault.kind={kind}",
                               "--parallelism.test/fault.step=3"],
                           timeout=TIMEOUT if kind == "hang" else NEVER)
                (code, err), (other, _) = self.ends(within=HANG)
                self.assertNotEqual(code, 0, err)
                self.assertNotEqual(other, 0)
                self.assertIn("error:", err)
                self.assertRegex(err, r"rank 1\b")
                self.assertEqual(processes_with(str(self.out)), [])


class MemoryTest(ValidationCase):
    """Counted on a simulated rank of a Llama 8B with few blocks: doubling the tokens adds activations only."""

    def peak(self, ranks, tokens, *flags):
        run = titan("train", "--job.config_file", "train_configs/llama3_8b.toml", "--comm.mode", "fake_backend",
                    "--training.dataset", "jsonl", "--training.dataset_path", CORPUS / "train.jsonl",
                    "--activation_checkpoint.mode", "none", "--checkpoint.no_enable", "--profiling.no_enable_profiling",
                    "--training.local_batch_size", "1", "--training.seq_len", tokens, "--model.n_layers", "4",
                    "--world-size", ranks, "--rank", "0", P + "data_parallel_shard_degree", "1",
                    P + "context_parallel_degree", ranks, *flags, cwd=ROOT)
        self.assertEqual(run.returncode, 0, run.stderr)
        return int(re.search(r"(?m)^  most at once, with activations .* (\d+) bytes$", run.stdout)[1])

    @thorough
    def test_activations_fall_with_the_number_of_ranks(self):
        for method in ("allgather", "alltoall"):
            with self.subTest(method):
                one, two, four, eight = (
                    self.peak(ranks, 2 * 524288, P + "context_parallel_rotate_method", method)
                    - self.peak(ranks, 524288, P + "context_parallel_rotate_method", method) for ranks in (1, 2, 4, 8))
                self.assertGreater(one, 2**30)
                for ranks, grown in ((4, four), (8, eight)):
                    self.assertAlmostEqual(grown * ranks / (2 * two), 1, delta=0.02)
                # attention on one rank keeps a little more
                self.assertLess(2 * two / one, 1.02)
                self.assertGreater(2 * two / one, 0.85)


if __name__ == "__main__":
    main()
