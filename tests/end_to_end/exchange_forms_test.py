"""Name rules beyond renaming: stacks, splits, transposed, interleaved and concatenated weights, float8 and MXFP4. The files
come from transformers and safetensors, the expected results from transformers' own modules and torch; the model that
loads them (exchange_forms/plugin.cpp) is tested with `titan convert` and with training under several layouts."""

import json
import os
import pathlib

import before_transformers

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import GptOssConfig, Phi3Config, Phi3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts
from transformers.models.llama4.configuration_llama4 import Llama4TextConfig
from transformers.models.llama4.modeling_llama4 import Llama4TextExperts

from harness import TINY, Case, main, titan

transformers.utils.logging.disable_progress_bar()

FORMS = os.environ["TITAN_FORMS"]
E, D, F, HEADS, KV_HEADS, HEAD, VOCAB = 4, 160, 96, 4, 2, 20, 2048
LAYER, EXPERTS = "model.layers.0.", "model.layers.0.mlp.experts."
OURS = "layers.0.experts."
MODEL = ["--model.name", "test/forms", "--model.flavor", "tiny", "--plugins.paths", FORMS]


def noise(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def randomised(module):
    for i, weight in enumerate(module.parameters()):
        weight.data = noise(*weight.shape, seed=100 + i)
    return module


def stacked_experts():
    """Experts in the format of save_pretrained: one tensor per expert."""
    config = Qwen3MoeConfig(hidden_size=D, moe_intermediate_size=F, num_experts=E, num_hidden_layers=1, num_attention_heads=HEADS,
                            num_key_value_heads=KV_HEADS, head_dim=HEAD, vocab_size=64, intermediate_size=F)
    return config, randomised(Qwen3MoeForCausalLM(config))


def to_pairs(weight, heads):
    """Row r * size / 2 + j of a head goes to row 2j + r."""
    return weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


class FormsCase(Case):
    def common(self):
        """Weights of every form in addition to its experts; qkv_proj is that of a Phi-3, with rotary rows in pairs."""
        phi = randomised(Phi3ForCausalLM(Phi3Config(
            hidden_size=HEADS * HEAD, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, num_hidden_layers=1,
            intermediate_size=32, vocab_size=32, pad_token_id=0)))
        rows = phi.state_dict()["model.layers.0.self_attn.qkv_proj.weight"].shape[0]
        self.assertEqual(rows, (HEADS + 2 * KV_HEADS) * HEAD)
        self.wq, self.wk, self.wv = noise(HEADS * HEAD, D), noise(KV_HEADS * HEAD, D, seed=2), noise(KV_HEADS * HEAD, D, seed=3)
        return {"model.embed_tokens.weight": noise(VOCAB, D, seed=4), "model.norm.weight": noise(D, seed=5),
                "lm_head.weight": noise(VOCAB, D, seed=6), LAYER + "left.weight": noise(F, D, seed=7),
                LAYER + "right.weight": noise(F, D, seed=8), LAYER + "proj.weight": noise(200, D, seed=9),
                LAYER + "self_attn.qkv_proj.weight": torch.cat([to_pairs(self.wq, HEADS), to_pairs(self.wk, KV_HEADS), self.wv])}

    def expected(self, theirs, w1, w2, w3):
        return {"tok_embeddings.weight": theirs["model.embed_tokens.weight"], "norm.weight": theirs["model.norm.weight"],
                "output.weight": theirs["lm_head.weight"], "layers.0.wq.weight": self.wq, "layers.0.wk.weight": self.wk,
                "layers.0.wv.weight": self.wv, "layers.0.proj.weight": theirs[LAYER + "proj.weight"],
                "layers.0.pair.weight": torch.cat([theirs[LAYER + "left.weight"], theirs[LAYER + "right.weight"]]),
                OURS + "w1": w1, OURS + "w2": w2, OURS + "w3": w3}

    def stacked(self):
        config, model = stacked_experts()
        model.save_pretrained(self.folder / "qwen")
        saved = load_file(self.folder / "qwen" / "model.safetensors")
        theirs = self.common() | {name: weight for name, weight in saved.items() if name.startswith(EXPERTS)}
        self.assertEqual(sum(name.startswith(EXPERTS) for name in theirs), 3 * E)
        parts = {ours: torch.stack([saved[f"{EXPERTS}{e}.{name}.weight"] for e in range(E)])
                 for ours, name in (("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj"))}
        # the layout that transformers computes with: (E, 2F, D), the gate's rows first
        fused = model.model.layers[0].mlp.experts
        self.assertTrue(torch.equal(fused.gate_up_proj, torch.cat([parts["w1"], parts["w3"]], 1)))
        self.assertTrue(torch.equal(fused.down_proj, parts["w2"]))
        return theirs, self.expected(theirs, **parts)

    def fused(self):
        experts = randomised(Llama4TextExperts(Llama4TextConfig(hidden_size=D, intermediate_size=F, num_local_experts=E)))
        gate, up = experts.gate_up_proj.data.chunk(2, dim=-1)
        theirs = self.common() | {EXPERTS + name: weight.data for name, weight in experts.named_parameters()}
        w1, w2, w3 = (x.transpose(1, 2).contiguous() for x in (gate, experts.down_proj.data, up))
        # transformers' forward, with our weights
        x = noise(E * 3, D, seed=30)
        ours = torch.einsum("enf,edf->end", torch.nn.functional.silu(torch.einsum("end,efd->enf", x.view(E, 3, D), w1)) *
                            torch.einsum("end,efd->enf", x.view(E, 3, D), w3), w2)
        with torch.no_grad():
            torch.testing.assert_close(experts(x).view(E, 3, D), ours, rtol=1e-4, atol=1e-2)
        return theirs, self.expected(theirs, w1, w2, w3)

    def interleaved(self):
        experts = randomised(GptOssExperts(GptOssConfig(hidden_size=D, intermediate_size=F, num_local_experts=E)))
        gate_up, down = experts.gate_up_proj.data, experts.down_proj.data
        self.assertEqual(tuple(gate_up.shape), (E, D, 2 * F))
        theirs = self.common() | {EXPERTS + "gate_up_proj": gate_up, EXPERTS + "down_proj": down}
        w1, w2, w3 = (x.transpose(1, 2).contiguous() for x in (gate_up[..., ::2], down, gate_up[..., 1::2]))
        return theirs, self.expected(theirs, w1, w2, w3)

    def write_theirs(self, tensors, files=1, name="theirs"):
        folder = self.folder / name
        folder.mkdir()
        names = sorted(tensors)
        for i in range(files):
            save_file({k: tensors[k].contiguous() for k in names[i::files]}, folder / f"part-{i}.safetensors",
                      metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps({"model_type": "forms", "hidden_size": D, "num_experts": E}))
        return folder

    def read(self, folder):
        found = {}
        for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
            found |= load_file(path)
        return found

    def assert_same(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for name, tensor in expected.items():
            self.assertEqual((found[name].dtype, found[name].shape), (tensor.dtype, tensor.shape), name)
            self.assertTrue(torch.equal(found[name].view(torch.uint8), tensor.contiguous().view(torch.uint8)), name)

    def convert(self, direction, source, out, form, *options, code=0):
        model = [*MODEL, "--model.form", form] if direction == "from-hf" else ["--plugins.paths", FORMS]
        run = titan("convert", direction, source, out, *model, *options)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stderr


class ConvertTest(FormsCase):
    def round_trip(self, form, files=1):
        theirs, expected = getattr(self, form)()
        source = self.write_theirs(theirs, files)
        self.convert("from-hf", source, self.folder / "ours", form, "--verify")
        self.assert_same(self.read(self.folder / "ours"), expected)
        self.convert("to-hf", self.folder / "ours", self.folder / "back", form, "--verify", "--max-shard-size", "300KB")
        self.assert_same(self.read(self.folder / "back"), theirs)

    def test_stacks_of_experts(self):
        self.round_trip("stacked", files=3)

    def test_split_and_transposed_halves(self):
        self.round_trip("fused")

    def test_interleaved_columns(self):
        self.round_trip("interleaved")

    def test_in_bfloat16(self):
        theirs, expected = self.fused()
        source = self.write_theirs({name: weight.bfloat16() for name, weight in theirs.items()})
        self.convert("from-hf", source, self.folder / "ours", "fused")
        self.assert_same(self.read(self.folder / "ours"), {name: weight.bfloat16() for name, weight in expected.items()})

    def test_a_flipped_bit_of_a_source_is_found(self):
        theirs, _ = self.fused()
        self.convert("from-hf", self.write_theirs(theirs), self.folder / "ours", "fused")
        file = self.folder / "ours" / "weights-rank-00000.safetensors"
        content = bytearray(file.read_bytes())
        length = int.from_bytes(content[:8], "little")
        place = json.loads(content[8:8 + length])[OURS + "w1"]["data_offsets"][0]
        content[8 + length + place] ^= 1
        file.write_bytes(content)
        self.assertIn("is damaged", self.convert("to-hf", self.folder / "ours", self.out, "fused", code=1))

    def test_another_shape_names_the_rule(self):
        theirs, _ = self.fused()
        theirs[EXPERTS + "gate_up_proj"] = theirs[EXPERTS + "gate_up_proj"][..., :-2]
        del theirs[LAYER + "right.weight"]
        said = self.convert("from-hf", self.write_theirs(theirs), self.out, "fused", code=1)
        self.assert_holds(said, f"{EXPERTS}gate_up_proj is (4, 160, 190), the rules of {OURS}w1 make it (4, 160, 192)",
                          f"missing:\n    {LAYER}right.weight (layers.0.pair.weight)")

    def test_rules_that_do_not_fit_are_refused_before_a_file_is_read(self):
        source = self.folder / "theirs"
        source.mkdir()
        (source / "model.safetensors").write_bytes(b"no header")
        for mistake, text in (("gap", "gives no name for its parameter layers.0.proj.weight"),
                              ("twice", f"both map element (119, 0) of {LAYER}self_attn.qkv_proj.weight")):
            said = self.convert("from-hf", source, self.out, "fused", "--model.mistake", mistake, code=3)
            self.assert_holds(said, text, "test/forms")


class QuantisedForms(FormsCase):
    def float8(self):
        """Every expert and proj in e4m3; blocks at the edges are smaller. Expected: the product in float32, block by block."""
        theirs, expected = self.stacked()
        quantised = dict(theirs)
        values = {}
        for i, name in enumerate(name for name in sorted(theirs) if "experts" in name or "proj.weight" == name[-11:] and "qkv" not in name):
            weight = theirs[name]
            rows, columns = weight.shape
            scales = torch.rand(-(-rows // 128), -(-columns // 128), generator=torch.Generator().manual_seed(i)) + 0.1
            small = (weight / 4).to(torch.float8_e4m3fn)
            whole = torch.empty(rows, columns)
            for r in range(0, rows, 128):
                for c in range(0, columns, 128):
                    whole[r:r + 128, c:c + 128] = small[r:r + 128, c:c + 128].float() * scales[r // 128, c // 128]
            quantised |= {name: small, name + "_scale_inv": scales}
            values[name] = whole
        for ours, name in (("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj")):
            expected[OURS + ours] = torch.stack([values[f"{EXPERTS}{e}.{name}.weight"] for e in range(E)])
        expected["layers.0.proj.weight"] = values[LAYER + "proj.weight"]
        return quantised, expected

    def mxfp4(self):
        """Random blocks; the expected values are transformers' dequantized ones, in bfloat16."""
        theirs, expected = self.interleaved()
        chance = torch.Generator().manual_seed(5)
        bytes_of = lambda *shape: torch.randint(0, 256, shape, generator=chance).to(torch.uint8)
        scales_of = lambda *shape: torch.randint(100, 140, shape, generator=chance).to(torch.uint8)
        for name, rows, columns in (("gate_up_proj", 2 * F, D), ("down_proj", D, F)):
            del theirs[EXPERTS + name]
            blocks, scales = bytes_of(E, rows, columns // 32, 16), scales_of(E, rows, columns // 32)
            theirs |= {EXPERTS + name + "_blocks": blocks, EXPERTS + name + "_scales": scales}
            whole = convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.bfloat16)
            whole = whole.transpose(1, 2) if whole.shape[1] == columns else whole
            self.assertEqual(tuple(whole.shape), (E, rows, columns))
            if name == "gate_up_proj":
                expected |= {OURS + "w1": whole[:, ::2].contiguous(), OURS + "w3": whole[:, 1::2].contiguous()}
            else:
                expected[OURS + "w2"] = whole.contiguous()
        return theirs, expected


class QuantisedTest(QuantisedForms):
    def test_float8(self):
        theirs, expected = self.float8()
        self.convert("from-hf", self.write_theirs(theirs), self.folder / "ours", "stacked", "--verify")
        self.assert_same(self.read(self.folder / "ours"), expected)

    def test_mxfp4(self):
        theirs, expected = self.mxfp4()
        self.convert("from-hf", self.write_theirs(theirs), self.folder / "ours", "interleaved", "--verify")
        self.assert_same(self.read(self.folder / "ours"), expected)

    def test_what_is_wrong_with_scales_is_listed_at_once(self):
        theirs, _ = self.float8()
        scales = f"{EXPERTS}0.gate_proj.weight_scale_inv"
        theirs[scales] = theirs[scales].flatten()
        del theirs[f"{EXPERTS}1.up_proj.weight_scale_inv"]
        theirs[LAYER + "left.weight"] = theirs[LAYER + "left.weight"].to(torch.float8_e4m3fn)
        said = self.convert("from-hf", self.write_theirs(theirs), self.out, "stacked", code=1)
        self.assert_holds(said, "of a type that cannot be read", f"{scales} is (2), for {EXPERTS}0.gate_proj.weight (96, 160) it should be (1, 2)",
                          f"{EXPERTS}1.up_proj.weight is of type F8_E4M3, but its scales {EXPERTS}1.up_proj.weight_scale_inv are missing",
                          f"{LAYER}left.weight is of type F8_E4M3, for which the model's rules name no scales")

    def test_a_scale_that_stands_for_no_number(self):
        theirs, _ = self.mxfp4()
        theirs[EXPERTS + "down_proj_scales"][2, 3, 1] = 255
        said = self.convert("from-hf", self.write_theirs(theirs), self.out, "interleaved", code=1)
        self.assert_holds(said, EXPERTS + "down_proj_scales", "255")


class TrainTest(QuantisedForms):
    """A step with a learning rate too small to change a bit, so the run saves the weights that it has
    read."""

    def run_from(self, source, form, ranks, *layout, code=0):
        launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
        run = titan(*launch, "train", *TINY, *MODEL, "--model.form", form, "--training.steps", 1, "--optimizer.lr", "1e-60",
                    "--training.local_batch_size", 2, "--training.global_batch_size", 4, "--job.dump_folder", self.out,
                    "--checkpoint.enable", "--checkpoint.initial_load_in_hf", "--checkpoint.initial_load_path", source,
                    "--checkpoint.last_save_in_hf", "--metrics.no_enable_tensorboard", *layout)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stderr

    LAYOUTS = ((1, []), (2, ["--parallelism.data_parallel_shard_degree", 2]), (2, ["--parallelism.tensor_parallel_degree", 2]))

    def assert_reads(self, theirs, expected_back, form, *more):
        source = self.write_theirs(theirs)
        for ranks, layout in self.LAYOUTS:
            with self.subTest(ranks=ranks, layout=layout):
                self.out = self.folder / f"out-{ranks}-{len(layout) and layout[0]}"
                self.run_from(source, form, ranks, *layout, *more)
                found = self.read(self.out / "checkpoint" / "step-1")
                self.assertEqual(sorted(found), sorted(expected_back))
                for name, weight in expected_back.items():  # -0 - 0 is 0
                    self.assertTrue(torch.equal(found[name], weight), name)

    def test_every_layout_reads_what_it_holds_and_gives_it_back(self):
        for form in ("stacked", "fused", "interleaved"):
            with self.subTest(form=form):
                theirs, _ = getattr(self, form)()
                self.assert_reads(theirs, theirs, form)
                (self.folder / "theirs").rename(self.folder / f"theirs-{form}")
                for path in self.folder.glob("out*"):
                    path.rename(self.folder / f"{form}-{path.name}")

    def test_float8_under_every_layout(self):
        theirs, expected = self.float8()
        back = {name: weight for name, weight in theirs.items() if not name.endswith("scale_inv")}
        for ours, name in (("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj")):
            back |= {f"{EXPERTS}{e}.{name}.weight": expected[OURS + ours][e] for e in range(E)}
        back[LAYER + "proj.weight"] = expected["layers.0.proj.weight"]
        self.assert_reads(theirs, back, "stacked", "--checkpoint.initial_load_in_hf_quantized")

    def test_mxfp4_under_every_layout(self):
        theirs, expected = self.mxfp4()
        back = {name: weight for name, weight in theirs.items() if not name.endswith(("_blocks", "_scales"))}
        gate_up = torch.stack([expected[OURS + "w1"], expected[OURS + "w3"]], 2).view(E, 2 * F, D)
        back |= {EXPERTS + "gate_up_proj": gate_up.transpose(1, 2).float(), EXPERTS + "down_proj": expected[OURS + "w2"].transpose(1, 2).float()}
        self.assert_reads(theirs, back, "interleaved", "--checkpoint.initial_load_in_hf_quantized")

    def test_quantised_weights_are_asked_for(self):
        said = self.run_from(self.write_theirs(self.float8()[0]), "stacked", 1, code=2)
        self.assert_holds(said, "holds quantised weights", "checkpoint.initial_load_in_hf_quantized = true")


if __name__ == "__main__":
    main()
