"""experiments/toy_experts, built against an installation: a mixture of experts whose rows are sent to the ranks of their experts,
under every data-parallel layout, a pipeline and recomputation, compared with one rank."""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import safetensors.numpy

from harness import ROOT, Case, environment, losses, main, metrics
from installed import build_project, titan_installed, train_installed

RECIPE = ["--job.config_file", "experiments/toy_experts/train.toml"]
CONVERTER, PARALLEL = "maintainers/toy_experts", "maintainers/expert_parallel"
EXPERTS, TOP_K, HIDDEN, DIM, LAYERS, SEQ_LEN, BATCH, DOUBLE = 8, 2, 32, 64, 2, 64, 8, 8
EXPERT_BYTES = 2 * HIDDEN * DIM * DOUBLE
PLUGINS = None
DDP = ["--parallelism.data_parallel_shard_degree", "1", "--parallelism.data_parallel_replicate_degree"]
HYBRID = ["--parallelism.data_parallel_shard_degree", "2", "--parallelism.data_parallel_replicate_degree", "2"]
SAVES = ["--checkpoint.enable", "--checkpoint.interval", "3", "--checkpoint.no_last_save_model_only"]


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "toy_experts"
    PLUGINS = build_project(ROOT / "experiments/toy_experts", build) / "lib/titan/plugins"


def train(out, ranks, *arguments, degree=None):
    """`degree` None: without the parallelism."""
    own = ["--parallelism.further", ""] if degree is None else [f"--parallelism.{PARALLEL}.degree", degree]
    return train_installed(ranks, *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *own, *SAVES, *arguments)


def biases(folder):
    """The biases of a checkpoint by name; each is in one file."""
    found = {}
    for path in sorted(folder.glob("weights*.safetensors")):
        for name, value in safetensors.numpy.load_file(path).items():
            if name.endswith(".bias"):
                assert name not in found, name
                found[name] = value
    return found


def curves(out):
    lines = metrics(out)
    return ([[line[tag] for line in lines] for tag in ("loss_metrics/global_avg_loss", "loss_metrics/global_avg_auxiliary_loss",
                                                       "grad_norm")],
            (out / "fingerprints.jsonl").read_text(), biases(out / "checkpoint/step-6"))


@functools.cache
def alone():
    """Losses, norms, fingerprints and the last biases of one rank without the parallelism."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run = train(folder, 1)
        assert run.returncode == 0, run.stderr
        return curves(pathlib.Path(folder))


class ToyExpertsTest(Case):
    def assert_equals_one_rank(self, ranks, *arguments, degree):
        out = self.folder / f"{ranks}_{degree}_{len(arguments)}"
        run = train(out, ranks, *arguments, degree=degree)
        self.assertEqual(run.returncode, 0, run.stderr)
        values, prints, last = curves(out)
        expected, expected_prints, expected_last = alone()
        self.assertEqual(prints, expected_prints, "initial weights or tokens")
        numpy.testing.assert_allclose(values, expected, rtol=1e-9)
        self.assert_equal_biases(last, expected_last)

    def assert_equal_biases(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for name, value in expected.items():
            self.assertEqual(value.dtype, numpy.float32)
            self.assertGreater(numpy.abs(value).max(), 1e-3, "it never moved")
            numpy.testing.assert_array_equal(found[name], value, name)

    def test_fsdp(self):
        for ranks, degree in ((2, 2), (4, 2), (4, 4)):
            self.assert_equals_one_rank(ranks, degree=degree)

    def test_without_sharing_them(self):
        self.assert_equals_one_rank(2, degree=None)

    def test_replicas(self):
        for degree in (2, 4):
            self.assert_equals_one_rank(4, *DDP, "4", degree=degree)

    def test_hybrid_sharding(self):
        for degree in (2, 4):
            self.assert_equals_one_rank(4, *HYBRID, degree=degree)

    def test_in_a_pipeline(self):
        self.assert_equals_one_rank(4, "--parallelism.pipeline_parallel_degree", "2", "--training.local_batch_size", "2", degree=2)

    def test_beside_tensor_and_context_parallelism(self):
        """Without the auxiliary loss, which needs whole sequences, while these layouts shard
        them."""
        alone_without = None
        for ranks, degree, arguments in ((1, None, []), (2, None, ["tensor"]), (4, 2, ["tensor"]), (4, 2, ["context"])):
            out = self.folder / "_".join(map(str, [ranks, degree, *arguments]))
            cuts = [word for axis in arguments for word in (f"--parallelism.{axis}_parallel_degree", "2")]
            run = train(out, ranks, *cuts, f"--converter.{CONVERTER}.auxiliary", "0", degree=degree)
            self.assertEqual(run.returncode, 0, run.stderr)
            values, prints, last = curves(out)
            alone_without = alone_without or (values, prints, last)
            self.assertEqual(prints, alone_without[1])
            numpy.testing.assert_allclose(values, alone_without[0], rtol=1e-9)
            self.assert_equal_biases(last, alone_without[2])

    def test_where_blocks_are_run_again(self):
        for mode in (["full"], ["selective", "--activation_checkpoint.selective_ac_option", "op"],
                     ["full", "--activation_checkpoint.early_stop"]):
            self.assert_equals_one_rank(2, "--activation_checkpoint.mode", *mode, degree=2)

    def test_a_run_goes_on_under_another_layout(self):
        run = train(self.out, 4, "--training.steps", "3", degree=2)
        self.assertEqual(run.returncode, 0, run.stderr)
        manifest = json.loads((self.out / "checkpoint/step-3/manifest.json").read_text())
        self.assertEqual(manifest["layout"]["borrowed"], {"ep": 2})
        for ranks, arguments, degree in ((4, [], 2), (2, [], 2), (1, [], None), (4, DDP + ["4"], 4)):
            out = self.folder / f"on_{ranks}_{degree}_{len(arguments)}"
            run = train(out, ranks, *arguments, "--checkpoint.initial_load_path", self.out / "checkpoint/step-3",
                        "--checkpoint.no_initial_load_model_only", degree=degree)
            self.assertEqual(run.returncode, 0, run.stderr)
            numpy.testing.assert_allclose(losses(out), alone()[0][0][3:], rtol=1e-9)
            self.assert_equal_biases(biases(out / "checkpoint/step-6"), alone()[2])

    def test_rows_travel_and_experts_do_not(self):
        """Traffic of rank 0 of 4 in a step of two rounds. On simulated ranks, rows are distributed evenly over the experts."""
        def sent(degree):
            run = train(self.folder / f"simulated_{degree}", 1, "--comm.mode", "fake_backend", "--world-size", "4", degree=degree)
            self.assertEqual(run.returncode, 0, run.stderr)
            rows = re.findall(r"^  (\S+) (\S+) +\S+ GiB +(\d+) bytes", run.stdout, re.M)
            return {(group, operation): int(count) for group, operation, count in rows}

        rounds, num_gathers = BATCH // 4, 2 * BATCH // 4  # before each forward and each backward
        without = sent(None)
        for degree in (2, 4):
            with_plugin = sent(degree)
            leaving = (degree - 1) / degree
            counts, rows = EXPERTS * 8 * leaving, SEQ_LEN * TOP_K * DIM * DOUBLE * leaving
            self.assertEqual(with_plugin["ep", "all_to_all"], rounds * LAYERS * (counts + 4 * rows))
            here = EXPERTS // degree * EXPERT_BYTES * LAYERS  # experts shared by the group
            rest = 4 // degree
            self.assertEqual(with_plugin.get(("fsdp-ep", "all_gather"), 0), num_gathers * here * (rest - 1) // rest)
            self.assertEqual(with_plugin.get(("fsdp-ep", "reduce_scatter"), 0), here * (rest - 1) // rest)
            whole = EXPERTS * EXPERT_BYTES * LAYERS * 3 // 4
            self.assertEqual(without["fsdp", "all_gather"] - with_plugin["fsdp", "all_gather"], num_gathers * whole)
            self.assertEqual(without["fsdp", "reduce_scatter"] - with_plugin["fsdp", "reduce_scatter"], whole)

    def test_a_step_that_overflows_leaves_the_bias_alone(self):
        narrow = ["--training.dtype", "float32", "--training.mixed_precision_param", "float16", "--training.steps", "3"]
        for scale, moves in (("1e30", False), ("1024.0", True)):
            out = self.folder / scale
            run = train(out, 2, *narrow, "--training.loss_scaling.initial", scale, degree=2)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stderr.count("gradients overflowed float16"), 0 if moves else 3, run.stderr)
            for name, value in biases(out / "checkpoint/step-3").items():
                self.assertEqual(bool(numpy.any(value)), moves, name)

    def test_validation_moves_nothing(self):
        out = self.folder / "validated"
        run = train(out, 2, "--validation.enable", "--validation.dataset", "jsonl", "--validation.dataset_path",
                    "./tests/assets/corpus/train.jsonl", "--validation.seq_len", "64", "--validation.steps", "2",
                    "--validation.freq", "1", "--validation.local_batch_size", "1", degree=2)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_equal_biases(biases(out / "checkpoint/step-6"), alone()[2])

    def test_a_degree_that_does_not_divide_the_experts_is_placed(self):
        config = self.write("train.toml", (ROOT / "experiments/toy_experts/train.toml").read_text().replace("degree = 2", "degree = 3"))
        run = titan_installed("train", "--job.config_file", config, "--plugins.paths", PLUGINS, "--dry-run", "--world-size", "3",
                              "--training.global_batch_size", "9")
        self.assertEqual(run.returncode, 2, run.stderr)
        line = config.read_text().splitlines().index("degree = 3") + 1
        self.assert_holds(run.stderr, f"train.toml:{line}:", f"error: degree 3 does not divide the experts of {CONVERTER}: 8",
                          "nothing was started")
        run = train(self.out, 1, "--dry-run", "--world-size", "4", "--model.converters", "", degree=2)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, f"--parallelism.{PARALLEL}.degree 2", f"degree 2 does not divide the experts of {CONVERTER}: null")

    def test_torch_comes_to_the_same_loss_and_gradients(self):
        tokens = self.folder / "tokens.bin"
        drawn = numpy.random.default_rng(7).integers(0, 2048, 2 * (SEQ_LEN + 1)).astype("<u2")
        tokens.write_bytes(drawn.tobytes())
        arguments = ["--training.dataset", "tokens", "--training.dataset_path", tokens, "--dataset.tokens.format", "raw",
                     "--dataset.tokens.chunk_tokens", SEQ_LEN + 1, "--data.no_shuffle", "--training.global_batch_size", "2",
                     "--training.local_batch_size", "1", "--training.steps", "1", "--training.max_norm", "1e9",
                     "--optimizer.name", "SGD", "--optimizer.lr", "1.0", "--checkpoint.interval", "1"]
        seed = train(self.folder / "seed", 1, *arguments, "--checkpoint.create_seed_checkpoint")
        self.assertEqual(seed.returncode, 0, seed.stderr)
        run = train(self.out, 2, *arguments, degree=2)
        self.assertEqual(run.returncode, 0, run.stderr)
        whole = self.merged(self.out / "checkpoint/step-1")
        line = metrics(self.out)[0]
        judged = subprocess.run(
            [sys.executable, ROOT / "tests/referee/toy_experts_referee.py", "--before", self.folder / "seed/checkpoint/step-0",
             "--after", whole, "--tokens", tokens, "--rows", "2", "--heads", "4", "--experts", str(EXPERTS), "--top-k", str(TOP_K),
             "--coefficient", "0.01", "--loss", repr(line["loss_metrics/global_avg_loss"]),
             "--auxiliary", repr(line["loss_metrics/global_avg_auxiliary_loss"])],
            env=environment(), capture_output=True, text=True)
        print(judged.stdout)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)

    def merged(self, checkpoint):
        """The weights of a checkpoint in one file, assembled from their shards."""
        header = {}
        pieces = {}
        for path in sorted(checkpoint.glob("weights*.safetensors")):
            raw = path.read_bytes()
            meta = json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
            offsets = json.loads(meta["DCP_SHARDING_INFO"])
            for name, piece in safetensors.numpy.load_file(path).items():
                pieces.setdefault(name, []).append((offsets[name]["saved_offsets"], piece))
        for name, parts in pieces.items():
            shape = numpy.max([numpy.add(at, part.shape) for at, part in parts], axis=0)
            whole = numpy.full(shape, numpy.nan, parts[0][1].dtype)
            for at, part in parts:
                whole[tuple(slice(a, a + n) for a, n in zip(at, part.shape))] = part
            self.assertFalse(numpy.isnan(whole).any(), name)
            header[name] = whole
        folder = self.folder / "whole"
        folder.mkdir()
        safetensors.numpy.save_file(header, folder / "weights.safetensors")
        return folder


if __name__ == "__main__":
    main()
