"""Experts with adapters, and experts that Muon updates: every layout equals one rank in float64; adapters merged for
export, each into its own expert. The product of the two matrices is implemented here a second time."""

import functools
import pathlib
import tempfile

import before_transformers

import numpy
import safetensors.numpy

from harness import Case, main, metrics, titan
from mixtral_case import DOUBLE, EXPERTS, LAYERS, SHARD, STEPS, degrees, train

RANK, ALPHA = 4, 16
LORA = ["--model.converters", "lora", "--converter.lora.rank", RANK, "--converter.lora.alpha", ALPHA, "--converter.lora.targets",
        "experts,wq", "--optimizer.lr", "1e-2"]
MUON = ["--optimizer.name", "Muon", "--optimizer.lr", "3e-2", "--optimizer.adamw_lr", "1e-2"]
SAVES = ["--checkpoint.enable", "--checkpoint.interval", STEPS, "--checkpoint.no_last_save_model_only"]
EXPORTS = ["--checkpoint.enable", "--checkpoint.interval", STEPS, "--checkpoint.last_save_in_hf", "--checkpoint.export_dtype", "float32"]
LAYOUTS = [(2, SHARD), (2, [*SHARD, *degrees(expert_parallel=2)]), (4, [*SHARD, *degrees(expert_parallel=2)]),
           (2, degrees(tensor_parallel=2, expert_parallel=2)),
           (2, [*degrees(pipeline_parallel=2), "--training.local_batch_size", "2"])]


def tensors(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*.safetensors")):
        found |= safetensors.numpy.load_file(path)
    return found


def curves(out):
    return [[line[tag] for line in metrics(out) if tag in line] for tag in ("loss_metrics/global_avg_loss", "grad_norm")]


@functools.cache
def alone(*arguments):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run = train(folder, 1, *DOUBLE, *arguments)
        assert run.returncode == 0, run.stderr
        return curves(pathlib.Path(folder))


class MixtralTuningTest(Case):
    def train(self, name, ranks, *arguments):
        out = self.folder / name
        run = train(out, ranks, *arguments)
        self.assertEqual(run.returncode, 0, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return out

    def assert_equal_under_layouts(self, arguments, layouts, limit):
        expected = alone(*arguments)
        self.assertLess(expected[0][-1], expected[0][0], "nothing was learnt")
        for number, (ranks, layout) in enumerate(layouts):
            with self.subTest(ranks=ranks, layout=layout):
                out = self.train(f"layout_{number}", ranks, *DOUBLE, *arguments, *layout)
                numpy.testing.assert_allclose(curves(out), expected, rtol=limit)

    def test_adapters(self):
        self.assert_equal_under_layouts(tuple(LORA), LAYOUTS, 1e-9)

    def test_muon(self):
        cut = (2, degrees(tensor_parallel=2, expert_tensor_parallel=2))
        self.assert_equal_under_layouts(tuple(MUON), [*LAYOUTS, cut], 1e-9)

    def test_adapters_are_merged_each_into_its_own_expert(self):
        saved = tensors(self.train("saved", 1, *LORA, *SAVES) / f"checkpoint/step-{STEPS}")
        exported = {}
        for ranks, layout in ((1, []), (2, [*SHARD, *degrees(expert_parallel=2)])):
            found = tensors(self.train(f"exported_{ranks}", ranks, *LORA, *EXPORTS, *layout) / f"checkpoint/step-{STEPS}")
            exported[ranks] = found
            self.assertEqual(len(found), 3 + LAYERS * (7 + 3 * EXPERTS))
            for layer in range(LAYERS):
                for name in ("w1", "w2", "w3"):
                    stack = f"layers.{layer}.moe.experts.{name}"
                    a, b = saved[f"{stack}.lora_a.weight"].astype("f8"), saved[f"{stack}.lora_b.weight"].astype("f8")
                    self.assertEqual((len(a), a.shape[1], b.shape[2]), (EXPERTS, RANK, RANK))
                    for expert in range(EXPERTS):
                        theirs = found[f"model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}.weight"]
                        change = ALPHA / RANK * b[expert] @ a[expert]
                        self.assertGreater(numpy.abs(change).max(), 1e-4)
                        numpy.testing.assert_allclose(theirs, saved[stack][expert] + change, atol=1e-6 if ranks == 1 else 1e-4)
        run = titan("convert", "to-hf", self.folder / "saved" / f"checkpoint/step-{STEPS}", self.folder / "converted", "--verify")
        self.assertEqual(run.returncode, 0, run.stderr)
        converted = tensors(self.folder / "converted")
        self.assertEqual(sorted(converted), sorted(exported[1]))
        for name, value in exported[1].items():
            numpy.testing.assert_array_equal(converted[name], value, name)


if __name__ == "__main__":
    main()
