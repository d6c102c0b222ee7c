"""experiments/sharded_embedding, built against an installation: a parallelism with its own axis, under every data-parallel layout
compared with one rank."""

import functools
import json
import os
import pathlib
import re
import tempfile

import numpy
import safetensors.numpy

from harness import ROOT, Case, losses, main, metrics
from installed import build_project, train_installed

RECIPE = ["--job.config_file", "experiments/sharded_embedding/train.toml"]
NAME = "maintainers/sharded_embedding"
TABLE = "tok_embeddings.weight"
ROWS, DIM, SEQ_LEN, BATCH, DOUBLE = 2048, 64, 64, 8, 8
PLUGINS = None
DDP = ["--parallelism.data_parallel_shard_degree", "1", "--parallelism.data_parallel_replicate_degree"]


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "sharded_embedding"
    PLUGINS = build_project(ROOT / "experiments/sharded_embedding", build) / "lib/titan/plugins"


def train(out, ranks, *arguments, degree=None):
    """`degree` None: without the plugin."""
    own = ["--parallelism.further", ""] if degree is None else [f"--parallelism.{NAME}.degree", degree]
    return train_installed(ranks, *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *own, *arguments)


@functools.cache
def alone():
    """Losses, norms and fingerprints of one rank without the plugin."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run = train(folder, 1)
        assert run.returncode == 0, run.stderr
        return curves(pathlib.Path(folder))


def curves(out):
    lines = metrics(out)
    return ([line["loss_metrics/global_avg_loss"] for line in lines], [line["grad_norm"] for line in lines],
            (out / "fingerprints.jsonl").read_text())


class ShardedEmbeddingTest(Case):
    def assert_equals_one_rank(self, ranks, *arguments, degree):
        out = self.folder / f"{ranks}_{degree}_{len(arguments)}"
        run = train(out, ranks, *arguments, degree=degree)
        self.assertEqual(run.returncode, 0, run.stderr)
        values, norms, prints = curves(out)
        expected, expected_norms, expected_prints = alone()
        self.assertEqual(prints, expected_prints, "initial weights or tokens")
        numpy.testing.assert_allclose(values, expected, rtol=1e-9)
        numpy.testing.assert_allclose(norms, expected_norms, rtol=1e-9)
        return out

    def test_fsdp(self):
        for ranks, degree in ((2, 2), (4, 2), (4, 4)):
            self.assert_equals_one_rank(ranks, degree=degree)

    def test_replicas(self):
        for degree in (2, 4):
            self.assert_equals_one_rank(4, *DDP, "4", degree=degree)

    def test_hybrid_sharding(self):
        shards = ["--parallelism.data_parallel_shard_degree", "2", "--parallelism.data_parallel_replicate_degree", "2"]
        for degree in (2, 4):
            self.assert_equals_one_rank(4, *shards, degree=degree)

    def test_beside_context_and_pipeline(self):
        self.assert_equals_one_rank(4, "--parallelism.context_parallel_degree", "2", degree=2)
        self.assert_equals_one_rank(4, "--parallelism.pipeline_parallel_degree", "2", "--training.local_batch_size", "2", degree=2)

    def test_tensor_parallelism_has_the_table_already(self):
        run = train(self.out, 4, "--parallelism.tensor_parallel_degree", "2", degree=2)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, f"'{TABLE}' is cut over 'tp' already", NAME)

    def test_a_head_that_is_tied_needs_the_whole_table(self):
        run = train(self.out, 1, "--dry-run", "--world-size", "4", "--model.enable_weight_tying", degree=2)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "train.toml:35:12: error: ", f"'{TABLE}' is the head's weight too", NAME)

    def test_a_degree_that_the_ranks_cannot_have_is_placed(self):
        run = train(self.out, 1, "--dry-run", "--world-size", "4", degree=3)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, f"--parallelism.{NAME}.degree 3", "axis 'emb' cannot have 3 of the 4 ranks",
                          "possible: 1, 2, 4", "1 error; nothing was started")

    def test_it_moves_its_own_bytes_alone(self):
        """Traffic of rank 0 of 4 in a step of two rounds: ids and vectors over its own axis; of the table, of which each rank of a pair has
        half, data parallelism gathers and reduces the half that a rank shares with the other pair."""
        def sent(degree):
            run = train(self.folder / f"simulated_{degree}", 1, "--comm.mode", "fake_backend", "--world-size", "4", degree=degree)
            self.assertEqual(run.returncode, 0, run.stderr)
            rows = re.findall(r"^  (\S+) (\S+) +\S+ GiB +(\d+) bytes", run.stdout, re.M)
            return {(group, operation): int(count) for group, operation, count in rows}

        with_plugin, without = sent(2), sent(None)
        rounds, shard, vectors = BATCH // 4, ROWS // 4 * DIM * DOUBLE, SEQ_LEN * DIM * DOUBLE
        ids = SEQ_LEN * 8
        self.assertEqual(with_plugin["emb", "all_gather"], rounds * (ids + vectors))  # including the gradients of vectors
        self.assertEqual(with_plugin["emb", "reduce_scatter"], rounds * vectors)
        num_gathers = 2 * rounds  # before each forward and each backward
        self.assertEqual(with_plugin["fsdp-emb", "all_gather"], num_gathers * shard)
        self.assertEqual(with_plugin["fsdp-emb", "reduce_scatter"], shard)
        self.assertEqual(without["fsdp", "all_gather"] - with_plugin["fsdp", "all_gather"], num_gathers * 3 * shard)
        self.assertEqual(without["fsdp", "reduce_scatter"] - with_plugin["fsdp", "reduce_scatter"], 3 * shard)

    def test_a_run_goes_on_under_another_layout(self):
        saves = ["--checkpoint.enable", "--checkpoint.interval", "3", "--checkpoint.no_last_save_model_only"]
        run = train(self.out, 4, *saves, "--training.steps", "3", degree=2)
        self.assertEqual(run.returncode, 0, run.stderr)
        manifest = json.loads((self.out / "checkpoint/step-3/manifest.json").read_text())
        self.assertEqual(manifest["layout"]["borrowed"], {"emb": 2})
        table = self.whole_table(self.out / "checkpoint/step-3")
        self.assertEqual(table.shape, (ROWS, DIM))
        for ranks, arguments, degree in ((4, [], 2), (2, [], 2), (1, [], None), (4, DDP + ["4"], 4)):
            out = self.folder / f"on_{ranks}_{degree}_{len(arguments)}"
            run = train(out, ranks, *arguments, *saves, "--checkpoint.initial_load_path", self.out / "checkpoint/step-3",
                        "--checkpoint.no_initial_load_model_only", degree=degree)
            self.assertEqual(run.returncode, 0, run.stderr)
            numpy.testing.assert_allclose(losses(out), alone()[0][3:], rtol=1e-9)

    def whole_table(self, folder):
        """The table assembled from the shards in the files, which give their offsets."""
        pieces = []
        for path in sorted(folder.glob("weights*.safetensors")):
            for name, piece in safetensors.numpy.load_file(path).items():
                if name.startswith(TABLE):
                    pieces.append(piece)
        return numpy.concatenate(pieces)


if __name__ == "__main__":
    main()
