"""LoRA on a model that transformers saved: the base stays unchanged, adapters are trained and saved separately, a run resumes from them,
and the export has them merged. Judged by transformers; the product of the two matrices is implemented here a second time."""

import json

import before_transformers

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from checkpoint_case import CheckpointCase, content, header, whole_state, write_manifest
from harness import losses, main, thorough, titan

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

STEPS, RANK, ALPHA = 3, 4, 16
THEIR_NAMES = {"attention.wq": "self_attn.q_proj", "attention.wv": "self_attn.v_proj", "feed_forward.w2": "mlp.down_proj"}
LORA = ["--model.converters", "lora", "--converter.lora.rank", RANK, "--converter.lora.alpha", ALPHA,
        "--converter.lora.targets", "wq,wv,w2", "--optimizer.lr", "1e-2"]
SMALL_MODEL = ["--model.dim", 64, "--model.n_layers", 2, "--model.n_heads", 4, "--model.n_kv_heads", 2]
SIZES = ["--model.multiple_of", 64, "--model.rope_scaling.scaling_factor", 1]
FSDP_TP = (4, ["--parallelism.data_parallel_shard_degree", 2, "--parallelism.tensor_parallel_degree", 2])
TP = ["--parallelism.tensor_parallel_degree", 2]
SPLIT_BACKWARD = (4, [*TP, "--parallelism.pipeline_parallel_degree", 2, "--parallelism.pipeline_parallel_schedule",
                      "InterleavedZeroBubble", "--training.local_batch_size", 4])
FLOAT8 = ["--model.converters", "quantize.linear.float8,lora", "--quantize.linear.float8.emulate"]
EXPORT = ["--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf"]


def logits(model):
    tokens = torch.randint(2048, (2, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return model.eval()(tokens, use_cache=False).logits


def tensors(folder):
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= load_file(path)
    return found


class LoraCase(CheckpointCase):
    def setUp(self):
        super().setUp()
        torch.manual_seed(11)
        self.base = LlamaForCausalLM(LlamaConfig(
            hidden_size=64, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=2048, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
            max_position_embeddings=2048, initializer_range=0.08, attn_implementation="eager", bos_token_id=2046,
            eos_token_id=2047))
        self.base.save_pretrained(self.folder / "theirs")
        self.start = ["--checkpoint.initial_load_in_hf", "--checkpoint.initial_load_path", self.folder / "theirs"]

    def adapt(self, *arguments, ranks=1, code=0):
        return self.run_ranks(ranks, *SIZES, *LORA, *self.start, "--training.steps", STEPS, *arguments, code=code)

    def load(self, folder):
        model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                           local_files_only=True, output_loading_info=True)
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
            self.assertEqual(list(info[kind]), [], kind)
        return model

    def merged(self, state):
        """The base of transformers with the adapters of a checkpoint added to it."""
        with torch.no_grad():
            for ours, theirs in THEIR_NAMES.items():
                for layer in range(2):
                    a, b = (state[f"layers.{layer}.{ours}.lora_{which}.weight"].double() for which in "ab")
                    self.assertEqual((a.shape[0], b.shape[1]), (RANK, RANK))
                    weight = self.base.get_parameter(f"model.layers.{layer}.{theirs}.weight")
                    self.assertGreater((b @ a).abs().max().item(), 1e-4)
                    weight.copy_(weight.double() + ALPHA / RANK * (b @ a))
        return self.base


class LoraTest(LoraCase):
    def test_adapters_are_kept_beside_the_base_and_merged_for_others(self):
        self.adapt("--checkpoint.interval", STEPS)
        state = whole_state(self.saved / f"step-{STEPS}")
        weights = {name: tensor for name, tensor in state.items() if not name.startswith("optim.")}
        adapters = {name for name in weights if ".lora_" in name}
        self.assertEqual(len(adapters), 2 * 2 * len(THEIR_NAMES))
        self.assertEqual({name.split(".", 2)[2] for name in state if name.startswith("optim.")}, adapters)
        for ours, theirs in THEIR_NAMES.items():  # the base is bitwise unchanged
            expected = self.base.get_parameter(f"model.layers.1.{theirs}.weight")
            self.assertTrue(torch.equal(weights[f"layers.1.{ours}.weight"], expected), ours)
        trained = losses(self.out)

        expected = logits(self.merged(weights))
        for name, (ranks, layout) in {"one": (1, []), "fsdp_tp": FSDP_TP, "split_backward": SPLIT_BACKWARD}.items():
            with self.subTest(name):
                self.out = self.folder / name
                self.adapt(*layout, *EXPORT, ranks=ranks)
                for found, wanted in zip(losses(self.out), trained, strict=True):
                    self.assertAlmostEqual(found, wanted, delta=1e-4)
                folder = self.saved / f"step-{STEPS}"
                self.assertFalse((folder / "sharded").exists())
                found = logits(self.load(folder))
                self.assertGreater(expected.abs().max().item(), 0.5)
                self.assertLess((found - expected).abs().max().item(), 1e-5 if ranks == 1 else 1e-4)

    def test_a_run_goes_on_from_its_adapters(self):
        self.adapt("--checkpoint.interval", STEPS, "--training.steps", 2 * STEPS)
        straight = losses(self.out)
        self.out = self.folder / "stopped"
        self.adapt("--checkpoint.interval", STEPS)
        run = self.adapt("--training.steps", 2 * STEPS, "--converter.lora.alpha", 2 * ALPHA, code=2)
        self.assert_holds(run.stderr, f"converter.lora.alpha is {ALPHA}.0 there and {2 * ALPHA}.0 here")
        run = self.adapt("--checkpoint.interval", STEPS, "--training.steps", 2 * STEPS)
        self.assertEqual(self.resumed_after(run.stdout + run.stderr), STEPS)
        self.assertEqual(losses(self.out), straight)

    def test_a_run_starts_from_a_checkpoint_without_adapters(self):
        self.run_ranks(1, *SIZES, "--checkpoint.interval", STEPS)
        base = self.saved / f"step-{STEPS}"
        self.out = self.folder / "adapted"
        self.run_ranks(1, *SIZES, *LORA, "--checkpoint.initial_load_path", base, "--checkpoint.interval", STEPS)
        expected, found = whole_state(base), whole_state(self.saved / f"step-{STEPS}")
        weights = [name for name in expected if not name.startswith("optim.")]
        self.assertGreater(len(weights), 10)
        for name in weights:
            self.assertTrue(torch.equal(found[name], expected[name]), name)

    def test_a_base_that_lacks_a_weight_is_refused(self):
        """Only adapters may be missing."""
        path = self.folder / "theirs" / "model.safetensors"
        weights = load_file(path)
        weights.pop("model.layers.1.mlp.up_proj.weight")
        save_file(weights, path, metadata={"format": "pt"})
        run = self.adapt(code=1)
        self.assert_holds(run.stderr, "missing", "model.layers.1.mlp.up_proj.weight")
        self.assertNotIn("lora", run.stderr)

    def test_a_target_that_is_not_there_is_named(self):
        run = self.adapt("--converter.lora.targets", "wq,q_proj", code=2)
        self.assert_holds(run.stderr, "converter.lora.targets", "'q_proj'", "'wq', 'wk', 'wv', 'wo', 'w1', 'w2', 'w3'")
        self.assert_nothing_was_written()


class LoraConversionTest(LoraCase):
    """`titan convert to-hf` of a run's checkpoint gives the same folder as the run's own export."""

    def trained(self, name, *arguments, ranks=1):
        """A run's folder of step STEPS."""
        self.out = self.folder / name
        self.adapt(*arguments, ranks=ranks)
        return self.saved / f"step-{STEPS}"

    def convert(self, source, name, *options, code=0):
        run = titan("convert", "to-hf", source, self.folder / name, *options)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run.stderr

    def assert_same(self, name, expected, dtype=torch.float32):
        found = tensors(self.folder / name)
        self.assertEqual(sorted(found), sorted(expected))
        for key, tensor in expected.items():
            self.assertEqual(found[key].dtype, dtype, key)
            self.assertTrue(torch.equal(found[key], tensor.to(dtype)), key)

    @thorough
    def test_equals_the_export_of_the_run_on_one_rank(self):
        source = self.trained("kept", "--checkpoint.interval", STEPS)
        exported = self.trained("exported", *EXPORT)
        expected, stored = tensors(exported), whole_state(source)
        changed = [name for name in expected if any(theirs in name for theirs in THEIR_NAMES.values())]
        self.assertEqual(len(changed), 2 * len(THEIR_NAMES))
        for theirs in changed:
            self.assertFalse(torch.equal(expected[theirs], self.base.get_parameter(theirs)), theirs)

        said = self.convert(source, "whole", "--verify")
        self.assert_holds(said, f"converter 'lora' changes {len(changed)} of {len(expected)} weights")
        self.assert_same("whole", expected)
        for name in ("config.json", "generation_config.json", "tokenizer.json"):
            self.assertEqual((self.folder / "whole" / name).read_text(), (exported / name).read_text(), name)
        before = content(self.folder / "whole")
        self.assert_holds(self.convert(source, "whole"), "equals its source", "nothing to do")
        self.assertEqual(content(self.folder / "whole"), before)

        self.convert(source, "narrow", "--verify", "--dtype", "bfloat16")
        self.assert_same("narrow", expected, torch.bfloat16)
        self.goes_on_after_an_interruption(source, expected)
        self.says_what_does_not_fit(source, stored)

    def goes_on_after_an_interruption(self, source, expected):
        """With one bit of an adapter damaged temporarily."""
        path = next(source.glob("weights*.safetensors"))
        entries, start = header(path)
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[start + entries["layers.1.attention.wv.lora_b.weight"]["data_offsets"][1] - 1] ^= 1
        path.write_bytes(damaged)
        options = ["--max-shard-size", "100KB"]
        said = self.convert(source, "parts", *options, code=1)
        self.assert_holds(said, "layers.1.attention.wv.lora_b.weight is damaged")
        there = list((self.folder / "parts").glob("*.safetensors"))
        self.assertGreaterEqual(len(there), 2)
        path.write_bytes(whole)
        said = self.convert(source, "parts", *options)
        self.assertEqual(said.count("already exists, kept"), len(there))
        self.assertGreater(said.count(": wrote "), 1)
        self.assert_same("parts", expected)
        self.load(self.folder / "parts")

    def says_what_does_not_fit(self, source, stored):
        said = self.convert(source, "none", "--converter.lora.targets", "wq,wk", code=1)
        self.assert_holds(said, "are not those of llama3 debugmodel with lora",
                          "missing:\n    layers.0.attention.wk.lora_a.weight",
                          "not a weight of this model:\n    layers.0.attention.wv.lora_a.weight")
        said = self.convert(source, "none", "--model.converters", "", code=1)
        self.assert_holds(said, "layers.0.attention.wv.lora_a.weight", "a model without converters", "--model.converters names")
        manifest = json.loads((source / "manifest.json").read_text())
        manifest["config"]["model"]["converters"].append("acme/rank_one")
        write_manifest(source, manifest)
        said = self.convert(source, "none", code=2)
        self.assert_holds(said, "converter 'acme/rank_one' of model.converters is not installed", "manifest.json",
                          "--plugins.paths", '--model.converters "lora" converts without it', "looked in", "titan list converter")
        self.assertFalse((self.folder / "none").exists())

        bare = self.folder / "bare"  # weights of a run with command-line options, without other files
        bare.mkdir()
        save_file({name: tensor for name, tensor in stored.items() if not name.startswith("optim.")}, bare / "model.safetensors")
        self.convert(bare, "told", *SIZES, *SMALL_MODEL, *LORA[:-2], "--model.hf_assets_path", self.folder / "kept",
                     "--checkpoint.take_on_trust", "row_order")
        self.assert_same("told", tensors(self.folder / "whole"))

    @thorough
    def test_equals_the_export_of_the_run_on_two_ranks_beside_float8(self):
        source = self.trained("kept", *TP, *FLOAT8, "--checkpoint.interval", STEPS, ranks=2)
        exported = self.trained("exported", *TP, *FLOAT8, *EXPORT, ranks=2)
        self.convert(source, "converted")
        self.assert_same("converted", tensors(exported))


if __name__ == "__main__":
    main()
