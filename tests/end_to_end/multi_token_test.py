"""experiments/multi_token, built against an installation: future heads under every layout compared with one rank, and drafting with them,
whose ids and text equal those of `titan generate`."""

import functools
import json
import os
import pathlib
import sys
import tempfile

import numpy

from harness import ROOT, Case, main, metrics
from installed import build_project, run_checked, titan_installed, train_installed

RECIPE = ["--job.config_file", "experiments/multi_token/train.toml"]
SIZES = ["--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4", "--training.seq_len", "64"]
SHORT = [*SIZES, "--training.dtype", "float64", "--training.steps", "5", "--training.local_batch_size", "2", "--training.global_batch_size", "4",
         "--debug.deterministic", "--debug.fingerprints"]
AUXILIARY = "loss_metrics/global_avg_auxiliary_loss"
P = "--parallelism."
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = build_project(ROOT / "experiments/multi_token", pathlib.Path(os.environ["TITAN_WORK"]) / "multi_token")
    run_checked("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")
    PLUGINS = build / "lib/titan/plugins"


def train(out, ranks, *arguments):
    return train_installed(ranks, *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *arguments)


def curves(out, ranks, *arguments):
    run = train(out, ranks, *SHORT, *arguments)
    assert run.returncode == 0, run.stderr
    numbers = ("loss_metrics/global_avg_loss", AUXILIARY, "grad_norm")
    return [[line[number] for line in metrics(out)] for number in numbers], (out / "fingerprints.jsonl").read_text()


@functools.cache
def of_one_rank(*arguments):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        return curves(pathlib.Path(folder), 1, *arguments)


class LayoutTest(Case):
    def test_the_page_shows_what_was_measured(self):
        run_checked(sys.executable, ROOT / "experiments/multi_token/run.py", "--check")

    def test_every_layout_equals_one_rank(self):
        whole = [P + "data_parallel_shard_degree", "1"]
        fsdp, tp, pp = [P + "data_parallel_shard_degree", "2"], [P + "tensor_parallel_degree", "2"], [P + "pipeline_parallel_degree", "2"]
        documents = ["--data.isolate_documents", "--data.no_labels_cross_documents"]
        for number, (ranks, arguments, model) in enumerate((
                (2, fsdp, []), (2, [*whole, P + "data_parallel_replicate_degree", "2"], []), (2, [*whole, *tp], []),
                (2, [*whole, *tp, P + "tensor.no_sequence_parallel"], []), (2, [*whole, *tp, P + "disable_loss_parallel"], []),
                (2, [*whole, *pp], documents), (4, [*fsdp, *tp], documents), (4, [*fsdp, *pp, "--activation_checkpoint.mode", "full"], []))):
            with self.subTest(arguments=arguments, model=model):
                expected, prints = of_one_rank(*model)
                self.assertEqual(len(expected[0]), 5)
                found, found_prints = curves(self.folder / f"run_{number}", ranks, *model, *arguments)
                self.assertEqual(found_prints, prints, "initial weights or tokens")
                numpy.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_the_main_loss_and_the_others_are_apart(self):
        """With a weight of 0 the trunk learns as without heads; the first main loss never depends on them."""
        (losses, auxiliary, _), _ = of_one_rank("--model.future_weight", "0")
        self.assertEqual(auxiliary, [0] * 5)
        (weighted, auxiliary, _), _ = of_one_rank()
        run = train(self.out, 1, *SHORT, "--model.future_heads", "0")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn(AUXILIARY, metrics(self.out)[0])
        alone = [line["loss_metrics/global_avg_loss"] for line in metrics(self.out)]
        numpy.testing.assert_allclose(losses, alone, rtol=1e-9)
        self.assertEqual(weighted[0], alone[0])
        self.assertNotEqual(weighted[-1], alone[-1])
        self.assertGreater(auxiliary[0], 0.3 * 5)

    def test_split_sequences_are_refused(self):
        run = train(self.out, 2, *SHORT, P + "context_parallel_degree", "2", P + "data_parallel_shard_degree", "1")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "set parallelism.context_parallel_degree = 1")


class SpeculateTest(Case):
    PROMPTS = ("The king said", "A", "It was a dark night, and the old man")

    def trained(self, name, *flags):
        out = self.folder / name
        run = train(out, 1, *SIZES, "--training.steps", "60", "--training.local_batch_size", "4", "--checkpoint.enable", "--checkpoint.interval",
                    "100", *flags)
        self.assertEqual(run.returncode, 0, run.stderr)
        return out / "checkpoint"

    def speculate(self, checkpoint, *flags, code=0, launch=()):
        run = titan_installed(*launch, "maintainers/speculate", "--checkpoint", checkpoint, *[word for prompt in self.PROMPTS for word in ("--prompt", prompt)],
                              *flags, TITAN_PLUGIN_PATH=str(PLUGINS))
        self.assertEqual(run.returncode, code, run.stderr)
        return run

    def test_ids_and_text_are_those_of_titan_generate(self):
        for heads in (1, 3):
            checkpoint = self.trained(f"heads_{heads}", "--model.future_heads", str(heads))
            for most in (1, 2, 48):
                with self.subTest(heads=heads, most=most):
                    lines = [json.loads(line) for line in self.speculate(checkpoint, "--max-new-tokens", most, "--ignore-eos").stdout.splitlines()]
                    run = titan_installed("generate", "--checkpoint", checkpoint, "--plugins.paths", PLUGINS, "--max-new-tokens", most, "--json",
                                          "--ignore-eos", *[word for prompt in self.PROMPTS for word in ("--prompt", prompt)])
                    self.assertEqual(run.returncode, 0, run.stderr)
                    expected = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
                    self.assertEqual([(line["ids"], line["text"]) for line in lines[:-1]], [(line["ids"], line["text"]) for line in expected])
                    counts = lines[-1]
                    self.assertEqual(counts["tokens"], most * len(self.PROMPTS))
                    self.assertEqual(len(counts["drafted"]), heads)
            # a forward checks one token and those accepted before it
            self.assertEqual(counts["tokens"], counts["forwards"] + sum(counts["accepted"]))
            self.assertGreater(sum(counts["accepted"]), 0)
            self.assertLess(sum(counts["accepted"]), sum(counts["drafted"]))

    def test_it_compares_and_measures(self):
        checkpoint = self.trained("two")
        summary = json.loads(self.speculate(checkpoint, "--max-new-tokens", "16", "--compare").stdout.splitlines()[-1])
        self.assertTrue(summary["equals_greedy"])
        self.assertGreater(summary["plain_tokens_per_second"], 0)

    def test_what_it_cannot_do_is_said(self):
        run = self.speculate(self.trained("none", "--model.future_heads", "0"), "--max-new-tokens", "8", code=2)
        self.assert_holds(run.stderr, "this model has none", "train with model.future_heads >= 1")
        run = self.speculate(self.trained("some"), "--max-new-tokens", "8", code=2, launch=("launch", "--nproc", "2", "--log-dir", self.folder / "logs", "--"))
        self.assert_holds(run.stderr, "runs on one rank, got 2")


if __name__ == "__main__":
    main()
