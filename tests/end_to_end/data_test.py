"""Training from every kind of source: the same documents give the same run in every file format; a run that was interrupted
resumes with every token once, under other numbers of ranks, rows and threads; blends, packing and shuffling as configured."""

import gzip
import json
import os
import pathlib
import re
import shutil

import numpy
import pyarrow
import pyarrow.parquet
import tokenizers
import zstandard

from checkpoint_case import SMALL, CheckpointCase
from harness import ROOT, TITAN, losses, main, metrics, thorough, titan
from ranks_test import fingerprints

CORPUS = ROOT / "tests/assets/corpus"
STEPS = 6


def texts():
    return [json.loads(line)["text"] for line in (CORPUS / "train.jsonl").read_text().splitlines()][:300]


def tokens_by_step(folder):
    """{step: hash of the step's tokens, whatever the layout}."""
    return {line["step"]: line["tokens"] for line in map(json.loads, fingerprints(folder).splitlines()) if "tokens" in line}


class DataCase(CheckpointCase):
    def setUp(self):
        super().setUp()
        self.recipe = [*SMALL, "--training.steps", str(STEPS), "--checkpoint.no_enable"]

    def jsonl(self, documents, name="data.jsonl"):
        return self.write(name, "".join(json.dumps({"text": text}) + "\n" for text in documents))

    def run_in(self, name, ranks, *arguments, **options):
        """Losses and tokens of a run in a separate folder."""
        self.out = self.folder / name.replace(" ", "_")
        self.run_ranks(ranks, *arguments, **options)
        return losses(self.out), tokens_by_step(self.out)


class SourcesTest(DataCase):
    """The same 300 documents in every format."""

    def sources(self):
        documents = texts()
        lines = [json.dumps({"text": text}) + "\n" for text in documents]
        plain = self.write("plain/data.jsonl", "".join(lines))
        yield "jsonl", ["--training.dataset", "jsonl", "--training.dataset_path", plain]
        yield "jsonl without an index", ["--training.dataset", "jsonl", "--training.dataset_path", plain,
                                         "--dataset.jsonl.no_index"]
        halves = [b"".join(gzip.compress(line.encode()) for line in part) for part in (lines[:170], lines[170:])]
        for number, half in enumerate(halves):  # two shards, one member per line
            self.write(f"c4/c4-train.{number:05}-of-00002.json.gz", half)
        yield "c4", ["--training.dataset", "c4", "--training.dataset_path", self.folder / "c4"]
        frames = zstandard.ZstdCompressor().compress("".join(lines[:100]).encode())
        frames += zstandard.ZstdCompressor().compress("".join(lines[100:]).encode())
        self.write("zst/data.jsonl.zst", frames)
        yield "zst", ["--training.dataset", "jsonl", "--training.dataset_path", self.folder / "zst"]
        table = pyarrow.table({"id": list(range(300)), "text": documents})
        (self.folder / "parquet").mkdir()
        pyarrow.parquet.write_table(table.slice(0, 120), self.folder / "parquet/a.parquet", row_group_size=120)
        pyarrow.parquet.write_table(table.slice(120), self.folder / "parquet/b.parquet", row_group_size=180)
        yield "parquet", ["--training.dataset", "parquet", "--training.dataset_path", self.folder / "parquet"]
        for number, text in enumerate(documents):
            self.write(f"folder/{number:03}.txt", text)
        yield "text_folder", ["--training.dataset", "text_folder", "--training.dataset_path", self.folder / "folder"]
        made = titan("tokenize", "--output", self.folder / "tokens/data", "--training.dataset", "jsonl",
                     "--training.dataset_path", plain, "--model.hf_assets_path", ROOT / "tests/assets/tokenizer")
        self.assertEqual(made.returncode, 0, made.stderr)
        tokens = ["--training.dataset", "megatron", "--training.dataset_path", self.folder / "tokens/data"]
        yield "megatron", tokens
        yield "megatron without a tokenizer", [*tokens, "--model.hf_assets_path", self.folder / "none"]

    def test_the_same_documents_give_the_same_run_to_the_bit(self):
        (self.folder / "tokens").mkdir()
        expected = None
        for name, flags in self.sources():
            with self.subTest(name):
                found = self.run_in(name, 1, *flags)
                expected = expected or found
                self.assertEqual(found, expected)

    def test_and_on_two_ranks_with_threads_and_from_streams(self):
        (self.folder / "tokens").mkdir()
        expected = None
        for name, flags in self.sources():
            if name in ("jsonl", "c4", "parquet"):
                with self.subTest(name):
                    found = self.run_in(f"two {name}", 2, *flags, "--training.dataloader.num_workers", "2")[1]
                    expected = expected or self.run_in("one", 1, *flags)[1]
                    self.assertEqual(found, expected)

    def test_c4_test_is_the_bundled_sample(self):
        self.assertEqual(self.run_in("c4_test", 1, "--training.dataset", "c4_test", "--training.dataset_path", "None"),
                         self.run_in("jsonl", 1, "--training.dataset_path", CORPUS / "train.jsonl"))

    def test_c4_without_a_folder_says_where_to_get_it(self):
        run = self.run_ranks(1, "--training.dataset", "c4", "--training.dataset_path", "None", code=2)
        self.assert_holds(run.stderr, "titan download dataset allenai/c4", "dataset_path")
        self.assert_nothing_was_written()


class ResumeTest(DataCase):
    """No token lost or repeated: the hash of each step's tokens is that of an uninterrupted run."""

    SAVE = ["--checkpoint.enable", "--checkpoint.interval", "2", "--checkpoint.no_last_save_model_only"]

    @thorough
    def test_4_ranks_then_2_then_8_over_the_end_of_epochs(self):
        data = self.jsonl(texts()[:9])  # about 40 sequences, so several epochs pass
        big = ["--training.dataset_path", data, "--training.global_batch_size", "8", "--training.steps", "12"]
        for name, flags in {"in order": [], "shuffled": ["--data.shuffle"], "best fit": ["--data.packing", "best_fit"]}.items():
            with self.subTest(name):
                _, expected = self.run_in(f"straight {name}", 1, *big, *flags)
                self.out = self.folder / f"resumed_{name}".replace(" ", "_")
                for ranks, steps, workers in ((4, 4, 0), (2, 8, 2), (8, 12, 1)):
                    run = self.run_ranks(ranks, *big, *flags, *self.SAVE, "--training.steps", steps,
                                         "--training.dataloader.num_workers", workers)
                    self.assertEqual(self.resumed_after(run.stderr), steps - 4)
                self.assertEqual(tokens_by_step(self.out), expected)

    def test_streams_go_on_too(self):
        packed = self.write("data.jsonl.gz", gzip.compress(self.jsonl(texts()[:9]).read_bytes()))
        flags = ["--training.dataset_path", packed, "--training.steps", "8", "--data.shuffle", "--data.shuffle_buffer", "4"]
        _, expected = self.run_in("straight", 1, *flags)
        self.out = self.folder / "resumed"
        for ranks, steps in ((2, 4), (1, 8)):
            self.run_ranks(ranks, *flags, *self.SAVE, "--training.steps", steps)
        self.assertEqual(tokens_by_step(self.out), expected)

    def test_another_global_batch_size_takes_the_streams_in_turn(self):
        """With constant weights, a step's loss is the mean over its sequences: steps of 2 are halves of steps of 4."""
        still = ["--training.dataset_path", self.jsonl(texts()), "--optimizer.lr", "1e-30", "--optimizer.weight_decay", "0"]
        self.out = self.folder / "changing"
        for ranks, rows, steps in ((1, 4, 2), (2, 2, 6), (1, 4, 8)):
            self.run_ranks(ranks, *still, *self.SAVE, "--training.global_batch_size", rows, "--training.steps", steps)
        found = losses(self.out)
        found = found[:2] + [(found[2] + found[3]) / 2, (found[4] + found[5]) / 2] + found[6:]
        expected, _ = self.run_in("straight", 1, *still)
        self.assertEqual(len(found), len(expected))
        for mine, theirs in zip(found, expected):
            self.assertAlmostEqual(mine, theirs, delta=2e-6)
        self.assertGreater(min(abs(a - b) for a, b in zip(expected, expected[1:])), 1e-4, "the steps do differ")

    def test_other_data_is_refused_with_what_differs(self):
        data = self.jsonl(texts()[:20])
        self.run_ranks(1, "--training.dataset_path", data, *self.SAVE)
        self.jsonl(texts()[:21])
        run = self.run_ranks(1, "--training.dataset_path", data, *self.SAVE, "--training.steps", "8", code=2)
        self.assert_holds(run.stderr, "fingerprint", "exclude_from_loading")
        self.run_ranks(1, "--training.dataset_path", data, *self.SAVE, "--training.steps", "8",
                       "--checkpoint.exclude_from_loading", "dataloader")


class EpochsTest(DataCase):
    """The log and the scalar give the number of epochs that follows from the documents' lengths by the tokenizers package."""

    ROWS = 4

    def ended(self, documents, steps):
        """Epochs that every row has finished after `steps` steps of 65 tokens: its document belongs to a later epoch."""
        encode = tokenizers.Tokenizer.from_file(str(ROOT / "tests/assets/tokenizer/tokenizer.json")).encode
        sizes = [len(encode(text, add_special_tokens=False).ids) + 2 for text in documents]  # with BOS and EOS
        ended = []
        for row in range(self.ROWS):
            number, read = row, sizes[row % len(sizes)]
            while read < 65 * steps:
                number += self.ROWS
                read += sizes[number % len(sizes)]
            ended.append(number // len(sizes))
        return min(ended)

    def test_each_end_is_told_once_and_counted_over_ranks_and_resumes(self):
        documents = texts()[:6]
        data = ["--training.dataset_path", self.jsonl(documents), "--metrics.log_freq", "4"]
        stderr = ""
        for ranks, steps in ((1, 5), (2, 22), (1, 40)):  # the last step of the first two is not logged
            stderr += self.run_ranks(ranks, *data, *ResumeTest.SAVE, "--training.steps", steps).stderr
        told = []
        for first, last, step in re.findall(r"source 'jsonl': epochs? (\d+)(?: to (\d+))? ended by step (\d+)", stderr):
            told += range(int(first), int(last or first) + 1)
            self.assertEqual(self.ended(documents, int(step)), told[-1])
        self.assertEqual(told, list(range(1, self.ended(documents, 40) + 1)))
        self.assertGreater(len(told), 3)
        logged = {line["step"]: line["data_metrics/epochs/jsonl"] for line in metrics(self.out)}
        self.assertEqual(logged, {step: self.ended(documents, step) for step in (1, *range(4, 41, 4))})


class BlendTest(DataCase):
    def recipe_of(self, **weights):
        parts = {}
        for number, (name, weight) in enumerate(weights.items()):
            parts[name] = self.jsonl(texts()[number::len(weights)], f"{name}.jsonl")
        source = "".join(f'[data.sources.{name}]\ndataset = "jsonl"\ndataset_path = "{path}"\nweight = {weights[name]}\n'
                         for name, path in parts.items())
        recipe = re.sub(r'dataset(_path)? = "[^"]*"\n', "", (ROOT / "train_configs/debug_model.toml").read_text())
        path = self.write("blend.toml", recipe + source)
        self.recipe = ["--job.config_file", path, *self.recipe[2:]]

    def test_it_is_the_same_under_every_layout_and_after_a_resume(self):
        self.recipe_of(web=3, code=1)
        _, expected = self.run_in("one", 1, "--training.steps", "8")
        self.assertEqual(self.run_in("two", 2, "--training.steps", "8", "--training.dataloader.num_workers", "2")[1], expected)
        self.out = self.folder / "resumed"
        for ranks, steps in ((2, 4), (1, 8)):
            self.run_ranks(ranks, *ResumeTest.SAVE, "--training.steps", steps)
        self.assertEqual(tokens_by_step(self.out), expected)

    def test_the_saved_configuration_starts_the_same_run(self):
        self.recipe_of(web=3, code=1)
        found = self.run_in("one", 1)
        self.recipe = ["--job.config_file", self.folder / "one" / "config.toml"]
        self.assertEqual(self.run_in("again", 1), found)

    def test_two_places_for_the_data_are_one_too_many(self):
        self.recipe_of(web=3, code=1)
        run = self.run_ranks(1, "--training.dataset", "jsonl", code=2)
        self.assert_holds(run.stderr, "training.dataset cannot be combined with [data.sources]")


class FailureTest(DataCase):
    """The failing rank names file and record; the others are informed, because timeouts are too long to matter here."""

    UNTIMED = ["--comm.init_timeout_seconds", 100_000, "--comm.train_timeout_seconds", 100_000]

    def test_a_broken_record_ends_both_ranks_with_its_place(self):
        documents = [json.dumps({"text": text}) for text in texts()[:200]]
        documents[61] = documents[61][:-5]  # read by row 1 of 4, a few steps later
        data = self.write("data.jsonl", "\n".join(documents) + "\n")
        run = self.run_ranks(2, "--training.dataset_path", data, "--training.steps", "1000", *self.UNTIMED, code=1)
        self.assert_holds(run.stderr, "data.jsonl:62", "source 'jsonl'")

    def test_an_id_beyond_the_model_is_refused_with_its_place(self):
        numpy.full(100000, 60000, "<u2").tofile(self.folder / "train.bin")
        run = self.run_ranks(1, "--training.dataset", "tokens", "--training.dataset_path", self.folder / "train.bin",
                             "--dataset.tokens.format", "raw", code=1)
        self.assert_holds(run.stderr, "train.bin", "token 60000", "which has 2048")
        self.assert_nothing_was_written()

    def test_text_without_a_tokenizer_says_what_it_lacks(self):
        run = self.run_ranks(1, "--training.dataset_path", self.jsonl(texts()), "--model.hf_assets_path", self.folder / "none", code=2)
        self.assert_holds(run.stderr, f"no tokenizer in '{self.folder}/none'", "is text and needs it", "hf_assets_path")
        self.assert_nothing_was_written()

    def test_documents_that_nothing_marks_are_warned_of(self):
        """A tokenizer with neither BOS nor EOS joins documents."""
        shutil.copytree(ROOT / "tests/assets/tokenizer", self.folder / "bare")
        whole = json.loads((self.folder / "bare/tokenizer.json").read_text())
        self.write("bare/tokenizer.json", json.dumps({**whole, "post_processor": None}))
        data = ["--training.dataset_path", self.jsonl(texts()[:20])]
        for config, is_bare in {'{}': True, '{"eos_token": "<|end_of_text|>"}': False}.items():
            with self.subTest(config):
                self.write("bare/tokenizer_config.json", config)
                flags = [*data, "--model.hf_assets_path", self.folder / "bare"]
                train = self.run_ranks(2, *flags, "--training.steps", 1)
                tokenized = titan("tokenize", "--output", self.folder / f"tokens {is_bare}", "--training.dataset", "jsonl", *flags)
                for run in (train, tokenized):
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assertEqual(run.stderr.count("has neither BOS nor EOS"), int(is_bare), run.stderr)

    def test_a_pipe_among_the_data_is_refused(self):
        self.jsonl(texts(), "data/a.jsonl")
        os.mkfifo(self.folder / "data/b.jsonl")
        run = self.run_ranks(1, "--training.dataset_path", self.folder / "data", code=1)
        self.assert_holds(run.stderr, "b.jsonl': it is not a regular file", "source 'jsonl'")
        self.assert_nothing_was_written()

    def test_a_source_that_hangs_is_an_error_with_its_place(self):
        """A file system that no longer responds, simulated by a data set that sleeps forever."""
        plugin = pathlib.Path(TITAN).parents[1] / "tests/bad_plugins/hanging_dataset"
        run = self.run_ranks(2, "--plugins.paths", plugin, "--training.dataset", "bad/hanging", "--data.timeout", "8s",
                             "--training.steps", "50", *self.UNTIMED, code=1)
        self.assertRegex(run.stderr, r"no data for \d+ s: ")
        self.assert_holds(run.stderr, "hanging:40", "data.timeout = 8 s")

    def test_a_truncated_shard_is_an_error_not_an_end(self):
        whole = gzip.compress(self.jsonl(texts()).read_bytes())
        data = self.write("data.jsonl.gz", whole[:len(whole) // 2])
        run = self.run_ranks(1, "--training.dataset_path", data, "--training.steps", "1000", code=1)
        self.assert_holds(run.stderr, "data.jsonl.gz", "cut off inside a gzip member", "source 'jsonl'")


class OptimumTest(DataCase):
    @thorough
    def test_the_model_learns_a_drawn_task_down_to_its_least_possible_loss(self):
        """An order-1 Markov chain: its entropy rate is the least possible loss, and the debug model reaches it."""
        run = self.run_ranks(1, "--training.dataset", "synthetic", "--training.dataset_path", "None",
                             "--dataset.synthetic.vocab_size", 16, "--dataset.synthetic.document_length", 1000000,
                             "--training.local_batch_size", 16, "--training.global_batch_size", 16, "--training.steps", 150,
                             "--optimizer.lr", "3e-3")
        optimum = float(re.search(r"least possible loss ([0-9.]+) nats", run.stderr)[1])
        last = losses(self.out)[-40:]
        self.assertGreater(losses(self.out)[0], optimum + 3)
        self.assertLess(sum(last) / len(last), optimum + 0.05)
        self.assertGreater(sum(last) / len(last), optimum - 0.01)


if __name__ == "__main__":
    main()
