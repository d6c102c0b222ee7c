"""Compares every job of train_configs/layouts on its ranks with the same network and batches on one rank, in float64.
Layouts, layers and experts are those of the jobs; networks are narrower and sequences short."""

import concurrent.futures
import math
import tomllib

import numpy

from harness import ROOT, Case, main, metrics, titan

RECIPES = sorted((ROOT / "train_configs/layouts").glob("*.toml"))
STEPS, BATCH = 3, 8
SHORT = ["--training.dtype", "float64", "--training.seq_len", "16", "--training.steps", STEPS, "--training.global_batch_size", BATCH,
         "--metrics.loggers", "jsonl", "--debug.fingerprints", "--debug.deterministic", "--model.dim", "64"]
NARROW = {"debugmodel_moe": ["--model.moe_hidden_dim", "48"], "gpt_oss": ["--model.moe_hidden_dim", "48"]}
DEGREES = [f"{axis}_degree" for axis in ("data_parallel_replicate", "data_parallel_shard", "tensor_parallel", "context_parallel",
                                         "pipeline_parallel", "expert_parallel", "expert_tensor_parallel")]
ALONE = [*(word for degree in DEGREES for word in (f"--parallelism.{degree}", "1")), "--training.local_batch_size", BATCH,
         "--compile.no_enable"]


class Recipe:
    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        config = tomllib.loads(self.text)
        self.network = (config["model"]["name"], config["model"]["flavor"])
        self.narrow = NARROW.get(self.network[1], NARROW.get(self.network[0], []))
        # experts are distributed over ranks of other axes
        self.ranks = math.prod(config["parallelism"].get(degree, 1) for degree in DEGREES if not degree.startswith("expert"))


class LayoutsTest(Case):
    def curves(self, recipe, ranks, *arguments):
        """Losses and norms of each step, and hashes of the initial weights and of each step's tokens."""
        out = self.folder / f"{recipe.path.stem}_{ranks}"
        launch = ["launch", "--nproc", ranks, "--log-dir", f"{out}_logs", "--"] if ranks > 1 else []
        run = titan(*launch, "train", "--job.config_file", recipe.path, "--job.dump_folder", out, *SHORT, *recipe.narrow, *arguments)
        self.assertEqual(run.returncode, 0, f"{recipe.path.name} on {ranks}\n{run.stdout}\n{run.stderr}")
        lines = metrics(out)
        self.assertEqual([line["step"] for line in lines], list(range(1, STEPS + 1)))
        values = numpy.array([[line[tag] for line in lines] for tag in ("loss_metrics/global_avg_loss", "grad_norm")])
        self.assertTrue(numpy.isfinite(values).all(), values)
        return values, (out / "fingerprints.jsonl").read_text()

    def test_each_comes_to_the_losses_of_one_rank(self):
        recipes = [Recipe(path) for path in RECIPES]
        self.assertGreaterEqual(len(recipes), 8)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # two runs at a time; the run on one rank uses one core
            alone = {recipe.network: recipe for recipe in recipes}
            alone = {network: pool.submit(self.curves, recipe, 1, *ALONE) for network, recipe in alone.items()}
            found = [pool.submit(self.curves, recipe, recipe.ranks) for recipe in recipes]
        for recipe, future in zip(recipes, found, strict=True):
            with self.subTest(recipe=recipe.path.name):
                self.assertIn(f"NGPU={recipe.ranks} CONFIG_FILE=./train_configs/layouts/{recipe.path.name} ./run_train.sh", recipe.text)
                (values, prints), (expected, expected_prints) = future.result(), alone[recipe.network].result()
                self.assertEqual(prints, expected_prints, "initial weights or tokens")
                self.assertEqual(len(set(expected[0])), STEPS, "it learns nothing")
                numpy.testing.assert_allclose(values, expected, rtol=1e-9)


if __name__ == "__main__":
    main()
