"""`titan convert`: imports weights of transformers, Meta and torchtitan, exports Hugging Face folders. Judged by transformers, safetensors
and torch's distributed checkpoint reader; the orders of rows are implemented here a second time."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import before_transformers

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from harness import HANG, ROOT, TITAN, Case, environment, main, thorough, titan

transformers.utils.logging.disable_progress_bar()

HEADS, KV_HEADS, DIM, LAYERS, VOCAB, FFN = 4, 2, 64, 3, 2048, 256
SIZES = ["--model.dim", DIM, "--model.n_layers", LAYERS, "--model.n_heads", HEADS, "--model.n_kv_heads", KV_HEADS]
ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}
UNSCALED = ["--model.rope_scaling.scaling_factor", 1]
TIED = ["--model.enable_weight_tying"]
OUR_NAMES = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
             "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
             "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm", "embed_tokens": "tok_embeddings", "lm_head": "output"}


def make_model(dtype=torch.float32, tied=False, scaled=True):
    rope = {"rope_theta": 500000.0} | (ROPE if scaled else {"rope_type": "default"})
    torch.manual_seed(5)
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=DIM, intermediate_size=FFN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS, vocab_size=VOCAB, rms_norm_eps=1e-5, rope_parameters=rope, tie_word_embeddings=tied,
        max_position_embeddings=131072, bos_token_id=0, eos_token_id=1)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.uniform_(0.5, 1.5) if "norm" in name else weight.mul_(5)
    return cast(model, dtype)


def cast(model, dtype):
    """Parameters only: the table of rotary positions stays in float32, as with from_pretrained."""
    for weight in model.parameters():
        weight.data = weight.data.to(dtype)
    model.config.dtype = dtype
    model.config.architectures = ["LlamaForCausalLM"]
    return model


def load(folder, dtype):
    model, info = LlamaForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True, output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        assert not info[kind], (kind, info[kind])
    return model.eval()


def logits(model):
    tokens = torch.randint(VOCAB, (2, 50), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return model(tokens, use_cache=False).logits


def tensors(folder):
    """All tensors of a folder's files."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        found |= load_file(path)
    return found


def to_ours(name):
    name = name.removeprefix("model.")
    for theirs, ours in OUR_NAMES.items():
        name = name.replace(theirs, ours)
    return name


def to_pairs(weight, heads):
    """Row r * size / 2 + j of a head goes to row 2j + r."""
    size = weight.shape[0] // heads
    pairs = torch.empty_like(weight)
    for head in range(heads):
        for r in range(2):
            for j in range(size // 2):
                pairs[head * size + 2 * j + r] = weight[head * size + r * size // 2 + j]
    return pairs


def meta_weights(model):
    """Weights with Meta's names and order of rows."""
    weights = {to_ours(name): weight.detach().clone() for name, weight in model.state_dict().items()}
    for name, weight in weights.items():
        if ".wq." in name or ".wk." in name:
            weights[name] = to_pairs(weight, HEADS if ".wq." in name else KV_HEADS)
    return weights


class ConvertCase(Case):
    def convert(self, direction, source, out, *options, code=0, sizes=SIZES):
        options = [*sizes, *options] if direction != "to-hf" else options
        run = titan("convert", direction, source, out, *options)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        self.assertEqual(run.stdout, "")
        return run.stderr

    def assert_same_tensors(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for name, tensor in expected.items():
            self.assertEqual(found[name].dtype, tensor.dtype, name)
            self.assertTrue(torch.equal(found[name], tensor), name)

    def assert_same_model(self, model, folder):
        """The model that transformers loads from `folder` equals `model`: every bit, every logit,
        every setting."""
        again = load(folder, model.dtype)
        self.assert_same_tensors(dict(again.state_dict()), dict(model.state_dict()))
        self.assertTrue(torch.equal(logits(again), logits(model)))
        ours, theirs = again.config.to_dict(), model.config.to_dict()
        for key in ("_name_or_path", "transformers_version"):
            ours.pop(key, None), theirs.pop(key, None)
        self.assertEqual(ours, theirs)

    def saved(self, model, folder="theirs", **options):
        folder = self.folder / folder
        model.save_pretrained(folder, **options)
        return folder


class HuggingFaceTest(ConvertCase):
    def round_trip(self, options=(), shard_size="5GB", **kind):
        model = make_model(**kind)
        source = self.saved(model, max_shard_size=shard_size)
        self.convert("from-hf", source, self.folder / "ours", *options, "--verify")
        expected = {to_ours(name): weight for name, weight in tensors(source).items()}
        self.assert_same_tensors(tensors(self.folder / "ours"), expected)
        manifest = json.loads((self.folder / "ours" / "manifest.json").read_text())
        self.assertEqual((manifest["contents"], manifest["step"], manifest["model"]), ("weights", 0, "llama3"))
        self.convert("to-hf", self.folder / "ours", self.folder / "back", "--max-shard-size", shard_size, "--verify")
        self.assert_same_tensors(tensors(self.folder / "back"), tensors(source))
        self.assert_same_model(model, self.folder / "back")
        return source

    def test_float32_untied_scaled(self):
        self.round_trip()

    def test_bfloat16_tied_unscaled(self):
        self.round_trip([*TIED, *UNSCALED], dtype=torch.bfloat16, tied=True, scaled=False)

    def test_float32_tied_scaled_in_several_files(self):
        self.round_trip(TIED, shard_size="200KB", tied=True)
        self.assertGreater(len(list((self.folder / "back").glob("*.safetensors"))), 2)

    def test_bfloat16_untied_unscaled_in_several_files(self):
        source = self.round_trip(UNSCALED, shard_size="100KB", dtype=torch.bfloat16, scaled=False)
        index = "model.safetensors.index.json"
        theirs, ours = (json.loads((folder / index).read_text()) for folder in (source, self.folder / "back"))
        self.assertEqual(sorted(ours["weight_map"]), sorted(theirs["weight_map"]))
        self.assertEqual(ours["metadata"]["total_size"], theirs["metadata"]["total_size"])
        self.assertEqual(sorted(set(ours["weight_map"].values())),
                         sorted(path.name for path in (self.folder / "back").glob("*.safetensors")))

    def test_float16_is_taken_as_it_is(self):
        self.round_trip(dtype=torch.float16)

    def test_converts_types_as_torch_does(self):
        model = make_model()
        source = self.saved(model)
        for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
            ours, back, wide = (self.folder / f"{folder}_{name}" for folder in ("ours", "back", "wide"))
            self.convert("from-hf", source, ours, "--dtype", name)
            self.assert_same_tensors(tensors(ours), {to_ours(k): v.to(dtype) for k, v in tensors(source).items()})
            self.convert("to-hf", ours, back)
            self.assert_same_model(make_model(dtype), back)
            self.convert("to-hf", ours, wide, "--dtype", "float32")
            self.assert_same_tensors(tensors(wide), {k: v.to(dtype).float() for k, v in tensors(source).items()})

    def test_tokenizer_and_token_ids_go_along(self):
        source = self.saved(make_model())
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(ROOT / "tests/assets/tokenizer" / name, source)
        self.convert("from-hf", source, self.folder / "ours")
        self.convert("to-hf", self.folder / "ours", self.folder / "back")
        text = "Nothing is lost."
        self.assertEqual(AutoTokenizer.from_pretrained(self.folder / "back")(text)["input_ids"],
                         AutoTokenizer.from_pretrained(source)(text)["input_ids"])
        self.assertEqual(json.loads((self.folder / "back" / "generation_config.json").read_text()),
                         json.loads((source / "generation_config.json").read_text()))

    def test_settings_without_effect_on_logits_are_kept(self):
        """Servers read the context length, trainers the range; Titan does not use them."""
        model = make_model()
        for name, value in {"max_position_embeddings": 16384, "initializer_range": 0.013, "use_cache": False}.items():
            setattr(model.config, name, value)
        self.convert("from-hf", self.saved(model), self.folder / "ours")
        self.convert("to-hf", self.folder / "ours", self.folder / "back", "--verify")
        self.assert_same_model(model, self.folder / "back")

    def test_torch_reads_the_checkpoint(self):
        model = make_model()
        self.convert("from-hf", self.saved(model), self.folder / "ours", "--max-shard-size", "100KB")
        wanted = {to_ours(name): torch.zeros_like(weight) for name, weight in model.state_dict().items()}
        torch.distributed.checkpoint.load(wanted, storage_reader=HuggingFaceStorageReader(str(self.folder / "ours")),
                                          no_dist=True)
        self.assert_same_tensors(wanted, {to_ours(name): weight for name, weight in model.state_dict().items()})

    def test_shards_without_a_manifest_are_exported_too(self):
        model = make_model()
        weights = {to_ours(name): weight for name, weight in model.state_dict().items()}
        halves = {name: torch.tensor_split(weight, 2) for name, weight in weights.items()}
        for i in range(2):
            info = {name: {"saved_offsets": [half[0].shape[0] * i] + [0] * (half[0].dim() - 1)} for name, half in halves.items()}
            (self.folder / "shards").mkdir(exist_ok=True)
            save_file({name: half[i].contiguous() for name, half in halves.items()}, self.folder / "shards" / f"{i}.safetensors",
                      metadata={"DCP_SHARDING_INFO": json.dumps(info), "format": "pt"})
        said = self.convert("to-hf", self.folder / "shards", self.folder / "back", *SIZES, code=2)
        self.assert_holds(said, "has no manifest.json", "does not state the naming convention of its weights", "take_on_trust")
        self.assertFalse((self.folder / "back").exists())
        self.convert("to-hf", self.folder / "shards", self.folder / "back", *SIZES, "--checkpoint.take_on_trust", "row_order")
        self.assert_same_tensors(tensors(self.folder / "back"), dict(model.state_dict()))


class OtherNamesTest(ConvertCase):
    def judge(self, model, direction, source, *options):
        self.convert(direction, source, self.folder / "ours", *options)
        self.convert("to-hf", self.folder / "ours", self.folder / "back")
        again = load(self.folder / "back", model.dtype)
        self.assert_same_tensors(dict(again.state_dict()), dict(model.state_dict()))
        self.assertTrue(torch.equal(logits(again), logits(model)))

    def test_metas_single_file(self):
        model = make_model(torch.bfloat16)
        (self.folder / "meta").mkdir()
        weights = meta_weights(model)
        save_file(weights | {"rope.freqs": torch.ones(8)}, self.folder / "meta" / "consolidated.00.safetensors")
        changed = [name for name, weight in weights.items()
                   if not torch.equal(weight, {to_ours(k): v for k, v in model.state_dict().items()}[name])]
        self.assertEqual(len(changed), 2 * LAYERS)  # wq and wk: a missing permutation would show
        self.judge(model, "from-meta-names", self.folder / "meta")

    def test_metas_files_for_several_gpus(self):
        for embedding_dim in (0, 1):  # Llama 3 shards the embedding by rows, Llama 2 by columns
            model = make_model()
            folder = self.folder / f"meta_{embedding_dim}"
            folder.mkdir()
            for i in range(2):
                part = {"rope.freqs": torch.ones(8)}
                for name, weight in meta_weights(model).items():
                    dim = (None if "norm" in name else embedding_dim if "tok_embeddings" in name
                           else 1 if ".wo." in name or ".w2." in name else 0)
                    part[name] = weight if dim is None else weight.chunk(2, dim)[i].contiguous()
                save_file(part, folder / f"consolidated.0{i}.safetensors")
            self.judge(model, "from-meta-names", folder)
            shutil.rmtree(self.folder / "ours")
            shutil.rmtree(self.folder / "back")

    def test_a_tied_model_ignores_its_second_copy(self):
        model = make_model(tied=True)
        (self.folder / "meta").mkdir()
        weights = meta_weights(model)
        weights["output.weight"] = weights["tok_embeddings.weight"].clone()
        save_file(weights, self.folder / "meta" / "consolidated.00.safetensors")
        self.judge(model, "from-meta-names", self.folder / "meta", *TIED)

    def test_a_tied_model_refuses_another_head(self):
        model = make_model(tied=True)
        source = self.saved(model)
        weights = load_file(source / "model.safetensors")
        self.assertNotIn("lm_head.weight", weights)
        for change, code in ((0, 0), (1, 1)):
            head = weights["model.embed_tokens.weight"].clone()
            head[-1, -1] += change
            save_file(weights | {"lm_head.weight": head}, source / "model.safetensors", metadata={"format": "pt"})
            said = self.convert("from-hf", source, self.folder / f"ours_{change}", *TIED, code=code)
        self.assert_holds(said, "holds lm_head.weight with other values than model.embed_tokens.weight")
        self.assertFalse((self.folder / "ours_1").exists())

    def test_titans_own_rows_are_not_put_into_another_order(self):
        self.convert("from-hf", self.saved(make_model()), self.folder / "ours")
        for has_manifest in (True, False):
            for direction in ("from-torchtitan-names", "from-meta-names", "from-hf"):
                said = self.convert(direction, self.folder / "ours", self.folder / "again", code=2)
                self.assert_holds(said, "holds Titan's own weights", "weights-rank-00000.safetensors", "titan convert to-hf")
                self.assertFalse((self.folder / "again").exists())
            (self.folder / "ours" / "manifest.json").unlink(missing_ok=True)

    def test_torchtitans_names_old_and_new(self):
        model = make_model()
        old = meta_weights(model)
        new = {name.replace("attention.w", "attention.qkv_linear.w").replace("qkv_linear.wo", "wo")
               .replace("output.", "lm_head."): weight for name, weight in old.items()}
        self.assertIn("layers.0.attention.qkv_linear.wq.weight", new)
        for kind, weights in (("old", old), ("new", new)):
            (self.folder / kind).mkdir()
            states = {f"state.{name}.exp_avg": torch.ones(2) for name in weights}
            save_file(weights | states, self.folder / kind / "model.safetensors")
            self.judge(model, "from-torchtitan-names", self.folder / kind)
            shutil.rmtree(self.folder / "ours")
            shutil.rmtree(self.folder / "back")


class MistakesTest(ConvertCase):
    def refused(self, source, *options, code, direction="from-hf", sizes=SIZES):
        said = self.convert(direction, source, self.out, *options, code=code, sizes=sizes)
        self.assert_nothing_was_written()
        return said

    def test_another_flavor_is_named_by_what_differs(self):
        said = self.refused(self.saved(make_model()), "--model.n_kv_heads", HEADS, *UNSCALED, *TIED, code=2)
        self.assert_holds(said, "config.json describes another model", "num_key_value_heads is 2 there and 4 here",
                          "titan describe model", 'rope_type is "llama3" there and "default" here',
                          "tie_word_embeddings is false there and true here")

    def test_another_shape_is_named_by_its_tensor(self):
        source = self.saved(make_model())
        (source / "config.json").unlink()
        said = self.refused(source, "--model.n_kv_heads", HEADS, code=1)
        self.assert_holds(said, "no config.json", "of another shape",
                          "model.layers.0.self_attn.k_proj.weight is (32, 64), the model's is (64, 64)", "model.flavor")

    def test_missing_and_additional_tensors_are_named_together(self):
        source = self.saved(make_model())
        weights = load_file(source / "model.safetensors")
        del weights["model.layers.1.mlp.up_proj.weight"]
        weights["model.layers.1.mlp.up_proj.bias"] = torch.ones(3)
        save_file(weights, source / "model.safetensors", metadata={"format": "pt"})
        said = self.refused(source, code=1)
        self.assert_holds(said, "missing:\n    model.layers.1.mlp.up_proj.weight (layers.1.feed_forward.w3.weight)",
                          "not a weight of this model:\n    model.layers.1.mlp.up_proj.bias")

    def test_a_truncated_file(self):
        source = self.saved(make_model())
        os.truncate(source / "model.safetensors", (source / "model.safetensors").stat().st_size - 1000)
        self.assert_holds(self.refused(source, code=1), str(source / "model.safetensors"))

    def test_a_missing_file_of_the_index(self):
        source = self.saved(make_model(), max_shard_size="200KB")
        (source / sorted(path.name for path in source.glob("*.safetensors"))[1]).unlink()
        self.assert_holds(self.refused(source, code=1), "is missing, with", "fetch the missing files again")

    def test_pickles(self):
        (self.folder / "meta").mkdir()
        (self.folder / "meta" / "consolidated.00.pth").write_bytes(b"pickle")
        said = self.refused(self.folder / "meta", direction="from-meta-names", code=1)
        self.assert_holds(said, "consolidated.00.pth is pickled", "safetensors.torch.save_file")

    def test_a_flipped_bit_in_a_checkpoint(self):
        self.convert("from-hf", self.saved(make_model()), self.folder / "ours")
        file = self.folder / "ours" / "weights-rank-00000.safetensors"
        content = bytearray(file.read_bytes())
        content[-5000] ^= 1
        file.write_bytes(content)
        said = self.convert("to-hf", self.folder / "ours", self.out, code=1)
        self.assert_holds(said, str(file), "is damaged")
        self.assertFalse((self.out / "config.json").exists())

    def test_a_folder_that_holds_something_else(self):
        source = self.saved(make_model())
        self.write("out/notes.txt", "mine")
        said = self.convert("from-hf", source, self.out, code=2)
        self.assert_holds(said, "holds notes.txt", "choose a new folder")
        self.assertEqual([path.name for path in self.out.iterdir()], ["notes.txt"])

    def test_wrong_arguments(self):
        for arguments, part in ((["from-hf", "a"], "needs a direction, IN and OUT"),
                                (["from-there", "a", "b"], "unknown direction 'from-there'"),
                                (["from-hf", "a", "b", "--dtype", "float8"], "--dtype must be"),
                                (["from-hf", "a", "b", "--max-shard-size", "5 miles"], "5 miles"),
                                (["from-hf", "a", "b", "--model.dimm", "5"], "did you mean"),
                                (["from-hf", ROOT, ROOT], "the same folder")):
            run = titan("convert", *arguments)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, part)
        self.assertIn("usage: titan convert", titan("convert", "--help").stdout)


class InterruptedTest(ConvertCase):
    """On some hundred MB, so that the conversion can be interrupted."""

    SIZES = ["--model.dim", 1024, "--model.n_layers", 4, "--model.n_heads", 16, "--model.n_kv_heads", 8]

    def setUp(self):
        super().setUp()
        model = LlamaForCausalLM(LlamaConfig(
            hidden_size=1024, intermediate_size=2816, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=8,
            vocab_size=VOCAB, rms_norm_eps=1e-5, rope_parameters={"rope_theta": 500000.0} | ROPE, max_position_embeddings=131072))
        self.source = self.saved(model)

    def files(self, folder):
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}

    def interrupt_until_done(self, direction, source, out, *options):
        """Runs and kills it at a random moment after one more file exists, two to six times; returns all output."""
        chance = random.Random(3)
        command = [TITAN, "convert", direction, source, out, *map(str, options), "--max-shard-size", "20MB"]
        whole_files = lambda: len(list(out.glob("*.safetensors")))
        text, kills = "", 0
        for _ in range(40):
            with open(self.folder / "said.txt", "w+") as said:
                before = whole_files()
                run = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=said)
                while run.poll() is None and (whole_files() == before or kills == 6):
                    time.sleep(0.002)
                if run.poll() is None:
                    time.sleep(chance.random() * 0.2)
                    run.kill()
                run.wait()
                said.seek(0)
                text += said.read()
            if run.returncode == 0 and kills >= 2:
                return text
            if run.returncode == 0:  # finished before it could be killed: start again
                shutil.rmtree(out)
                text, kills = "", 0
                continue
            self.assertEqual(run.returncode, -9, text)
            kills += 1
        self.fail(f"never done after two kills: {text}")

    def test_killed_and_run_again_gives_the_same_bytes(self):
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.convert("from-hf", self.source, whole, "--max-shard-size", "20MB", sizes=self.SIZES)
        said = self.interrupt_until_done("from-hf", self.source, parts, *self.SIZES)
        self.assert_holds(said, "already exists, kept")
        self.assertEqual(self.files(parts), self.files(whole))
        manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (whole, parts)]
        self.assertEqual(manifests[0]["files"], manifests[1]["files"])

        self.interrupt_until_done("to-hf", whole, self.folder / "back")
        self.assert_same_tensors(tensors(self.folder / "back"), tensors(self.source))
        load(self.folder / "back", torch.float32)
        said = self.convert("to-hf", whole, self.folder / "back", "--max-shard-size", "20MB")
        self.assert_holds(said, "nothing to do", "equals its source")

    def test_another_source_is_not_mixed_in(self):
        with self.subTest("unfinished"):
            self.out.mkdir()
            (self.out / "titan_conversion.json").write_text("{}\n")
            said = self.convert("from-hf", self.source, self.out, sizes=self.SIZES, code=2)
            self.assert_holds(said, "unfinished conversion of another source")
            shutil.rmtree(self.out)
        self.convert("from-hf", self.source, self.out, sizes=self.SIZES)
        weights = load_file(self.source / "model.safetensors")
        weights["model.norm.weight"][3] += 1
        save_file(weights, self.source / "model.safetensors", metadata={"format": "pt"})
        said = self.convert("from-hf", self.source, self.out, sizes=self.SIZES, code=1)
        self.assert_holds(said, "tensor norm.weight differs from its source")


@thorough
class MemoryTest(ConvertCase):
    """Twelve tensors of 64 MiB and some smaller ones, 1.1 GB in all."""

    SIZES = ["--model.dim", 2048, "--model.n_layers", 4, "--model.n_heads", 16, "--model.n_kv_heads", 8,
             "--model.ffn_dim_multiplier", 1.5]
    LARGEST_MIB = 64

    # Runs the command as a child of a small process, whose own size does not hide the child's.
    PARENT = ("import resource, subprocess, sys\n"
              "code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
              "sys.exit(code)")

    def peak_mib(self, *arguments):
        run = subprocess.run([sys.executable, "-IS", "-c", self.PARENT, TITAN, "convert", *map(str, arguments)], cwd=ROOT,
                             env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
        self.assertEqual(run.returncode, 0, run.stderr)
        return int(run.stdout) / 1024, run.stderr.splitlines()[-1]

    def test_memory_stays_near_one_tensor(self):
        idle, _ = self.peak_mib("from-hf", self.saved(make_model()), self.folder / "tiny", *SIZES)
        with torch.device("meta"):
            model = LlamaForCausalLM(LlamaConfig(
                hidden_size=2048, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=8,
                vocab_size=VOCAB, rms_norm_eps=1e-5, rope_parameters={"rope_theta": 500000.0} | ROPE, max_position_embeddings=131072))
        names = {to_ours(name): weight.shape for name, weight in model.state_dict().items()}
        self.assertGreaterEqual(sum(shape.numel() * 4 >> 20 == self.LARGEST_MIB for shape in names.values()), 12)
        source = self.folder / "meta"
        source.mkdir()
        noise = torch.randn(8192, 2048)
        save_file({name: noise.flatten()[:shape.numel()].view(shape).clone() for name, shape in names.items()},
                  source / "consolidated.00.safetensors")
        for direction, out, options in (("from-meta-names", "ours", self.SIZES), ("to-hf", "back", ["--dtype", "bfloat16"])):
            peak, said = self.peak_mib(direction, source, self.folder / out, *options)
            print(f"  {direction}: at most {peak:.0f} MiB, idle {idle:.0f} MiB; {said}", flush=True)
            self.assertLess(peak, idle + 3 * self.LARGEST_MIB)
            shutil.rmtree(source)
            source = self.folder / out


if __name__ == "__main__":
    main()
