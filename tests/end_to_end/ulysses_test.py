"""experiments/ulysses, built against an installation: sequence parallelism on its own mesh axis, alone and with every other parallelism,
compared with one rank without it; the bytes that it sends."""

import functools
import json
import os
import pathlib
import re
import sys
import tempfile

import numpy

from harness import ROOT, Case, main, metrics
from installed import build_project, run_checked, train_installed

RECIPE = ["--job.config_file", "experiments/ulysses/train.toml"]
NAME = "maintainers/ulysses"
P = "--parallelism."
STEPS, ROWS, SEQ_LEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, DOUBLE = 10, 4, 64, 2, 8, 4, 8, 8
RECOMPUTE = ["--activation_checkpoint.mode", "selective", "--activation_checkpoint.selective_ac_option", "op"]
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "ulysses"
    PLUGINS = build_project(ROOT / "experiments/ulysses", build) / "lib/titan/plugins"


def degrees(**axes):
    return [word for axis, degree in axes.items() for word in (f"{P}{axis}_parallel_degree", degree)]


def train(out, ranks, *arguments, degree):
    own = [P + "further", ""] if degree is None else [f"{P}{NAME}.degree", degree]
    return train_installed(ranks, *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *own, *arguments)


def curves(out):
    lines = metrics(out)
    return [[line[tag] for line in lines] for tag in ("loss_metrics/global_avg_loss", "grad_norm")]


def short_documents(folder):
    """Documents of which several share a row, some of them over the ranks' boundary."""
    texts = [json.loads(line)["text"].split() for line in (ROOT / "tests/assets/corpus/train.jsonl").read_text().splitlines()[:200]]
    path = pathlib.Path(folder) / "short.jsonl"
    path.write_text("".join(json.dumps({"text": " ".join(words[:5 + 7 * number % 23])}) + "\n" for number, words in enumerate(texts)))
    return ["--training.dataset_path", path, "--data.isolate_documents", "--data.no_labels_cross_documents"]


@functools.cache
def alone(has_documents):
    """Curves and fingerprints of one rank without the plugin."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run = train(folder, 1, *(short_documents(folder) if has_documents else []), degree=None)
        assert run.returncode == 0, run.stderr
        return curves(pathlib.Path(folder)), (pathlib.Path(folder) / "fingerprints.jsonl").read_text()


class UlyssesTest(Case):
    def test_the_page_shows_what_was_measured(self):
        run_checked(sys.executable, ROOT / "experiments/ulysses/run.py", "--check")

    def assert_equals_one_rank(self, ranks, *arguments, degree, documents=False):
        """Returns the MiB that rank 0 sends in a step."""
        out = pathlib.Path(tempfile.mkdtemp(prefix=f"run_{ranks}_", dir=self.folder))
        run = train(out, ranks, *arguments, *(short_documents(out) if documents else []), degree=degree)
        self.assertEqual(run.returncode, 0, run.stderr)
        expected, prints = alone(documents)
        self.assertEqual((out / "fingerprints.jsonl").read_text(), prints, "initial weights or tokens")
        found = curves(out)
        self.assertEqual(len(found[0]), STEPS)
        numpy.testing.assert_allclose(found, expected, rtol=1e-9)
        return metrics(out)[-1]["comm_metrics/sent_per_step(MiB)"]

    def assert_rungs(self, *rungs, **more):
        for ranks, degree, arguments in rungs:
            with self.subTest(ranks=ranks, degree=degree, arguments=arguments):
                self.assert_equals_one_rank(ranks, *arguments, degree=degree, **more)

    def test_alone(self):
        self.assert_rungs((2, 2, []), (4, 4, []), (2, 2, RECOMPUTE), (2, 2, ["--training.local_batch_size", "1"]))

    def test_with_data_parallelism(self):
        self.assert_rungs((4, 2, [P + "data_parallel_shard_degree", "2"]),
                          (4, 2, [P + "data_parallel_shard_degree", "1", P + "data_parallel_replicate_degree", "2"]))

    def test_with_tensor_parallelism(self):
        self.assert_rungs((4, 2, degrees(tensor=2)), (4, 2, [*degrees(tensor=2), P + "tensor.no_sequence_parallel"]))

    def test_with_a_pipeline(self):
        self.assert_rungs((4, 2, degrees(pipeline=2)), (4, 2, [*degrees(pipeline=2), P + "pipeline_parallel_schedule", "ZBVZeroBubble"]))

    def test_packed_documents(self):
        self.assertNotEqual(alone(True)[0], alone(False)[0])
        self.assert_rungs((2, 2, []), (4, 4, []), (4, 2, [P + "data_parallel_shard_degree", "2"]), (4, 2, degrees(tensor=2)),
                          (4, 2, degrees(pipeline=2)), documents=True)

    def test_three_axes(self):
        self.assert_rungs((8, 2, [P + "data_parallel_shard_degree", "2", *degrees(tensor=2)]))

    def test_on_the_axis_of_context_parallelism(self):
        on_cp = [P + "further", "", P + "context_parallel", NAME]
        self.assert_rungs((2, 1, [*on_cp, *degrees(context=2)]),
                          (4, 1, [*on_cp, *degrees(context=2), P + "data_parallel_shard_degree", "2"]),
                          (4, 1, [*on_cp, *degrees(context=2, pipeline=2)]))

    def test_validation_sums_the_loss_of_all_tokens(self):
        flags = ["--validation.enable", "--validation.dataset", "jsonl", "--validation.dataset_path", "./tests/assets/corpus/validation.jsonl",
                 "--validation.steps", "2", "--validation.freq", "10", "--validation.seq_len", "64", "--validation.local_batch_size", "2"]
        found = []
        for ranks, degree in ((1, None), (2, 2)):
            out = self.folder / f"validated_{ranks}"
            run = train(out, ranks, *flags, degree=degree)
            self.assertEqual(run.returncode, 0, run.stderr)
            found.append([line["validation_metrics/loss"] for line in metrics(out) if "validation_metrics/loss" in line])
        self.assertTrue(found[0])
        numpy.testing.assert_allclose(found[1], found[0], rtol=1e-9)

    def test_the_bytes_of_a_step(self):
        """Of attention rank 0 sends queries, keys, values and the result, there and back; of gradients the sum over its axis."""
        for degree in (2, 4):
            run = train(self.folder / f"simulated_{degree}", 1, "--comm.mode", "fake_backend", "--world-size", degree, degree=degree)
            self.assertEqual(run.returncode, 0, run.stderr)
            rows = re.findall(r"^  (\S+) (\S+) +\S+ GiB +(\d+) bytes", run.stdout, re.M)
            sent = {(group, operation): int(count) for group, operation, count in rows}
            widths = (2 * HEADS + 2 * KV_HEADS) * HEAD_DIM
            tokens = ROWS * SEQ_LEN // degree
            self.assertEqual(sent["ulysses", "all_to_all"], 2 * LAYERS * tokens * widths * DOUBLE * (degree - 1) // degree)

    def test_heads_that_cannot_be_divided_are_refused(self):
        run = train(self.out, 1, "--dry-run", "--world-size", "8", degree=8)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "'layers.0.attention' has 8 query heads and 4 key heads",
                          f"cannot be divided over 8 ranks of {NAME} x 1 of tensor parallelism", "1 error; nothing was started")

    def test_a_length_that_cannot_be_split_is_refused(self):
        run = train(self.out, 1, "--dry-run", "--world-size", "4", "--training.seq_len", "66", degree=4)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "training.seq_len = 66 is not divisible by degree x tensor_parallel_degree = 4", "nearest: 68")

    def test_experts_need_the_axis_of_context_parallelism(self):
        run = train(self.out, 1, "--dry-run", "--world-size", "2", "--model.name", "mixtral", degree=2)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, f'parallelism.context_parallel = "{NAME}"', "parallelism.context_parallel_degree = 2")


if __name__ == "__main__":
    main()
