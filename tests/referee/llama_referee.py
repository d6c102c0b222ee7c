"""Compares the llama3 and llama2 plugins with Hugging Face transformers (eager attention, fp32).

    llama_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models: logits, loss and all gradients, with weights that Titan initialises (exported to a folder that
from_pretrained reads) and with wider ones; rotary frequencies separately. Controls show that the comparison can fail:
it must find deliberate mistakes in the referee's model.
"""

import itertools
import math

import before_transformers

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

import titan_referee as titan
from model_names import LLAMA, swiglu
from model_referee import VOCAB, ModelReferee, judge

TINY = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": VOCAB, "multiple_of": 32}
SCALED_8 = {"rope_scaling": {"scaling_factor": 8.0}}
SCALED_32 = {"rope_scaling": {"scaling_factor": 32.0}}
TIED = {"enable_weight_tying": True}


class Llama3(ModelReferee):
    model = "llama3"
    kind = LlamaForCausalLM
    seq_len = 200
    implementations = {"attn_implementation": "eager"}
    block = LLAMA | swiglu("mlp", "feed_forward")
    controlled = "three bands"

    def controls(self, controls):
        model = controls.model
        turned = [weight for name, weight in model.named_parameters() if "q_proj" in name or "k_proj" in name]
        norms = [module for module in model.modules() if hasattr(module, "variance_epsilon")]
        controls.config("no scaling of frequencies",
                        rope_parameters={"rope_type": "default", "rope_theta": model.config.rope_parameters["rope_theta"]})
        controls.weights("rotation of pairs instead of halves", turned, lambda weight: weight.unflatten(
            0, (-1, model.config.head_dim // 2, 2)).transpose(1, 2).flatten(0, 2))
        controls.attribute("epsilon 1e-4", norms, "variance_epsilon", 1e-4)

    def judge(self):
        self.judge_case("gqa", TINY)
        self.judge_case("gqa scaled", TINY | SCALED_8)
        self.judge_case("gqa tied", TINY | TIED)
        self.judge_case("gqa tied scaled", TINY | TIED | SCALED_32)
        self.judge_case("mha", TINY | {"n_kv_heads": 4} | SCALED_8)
        self.judge_case("one kv head", TINY | {"n_kv_heads": 1} | SCALED_8)
        self.judge_case("wide heads", TINY | {"head_dim": 32, "ffn_dim_multiplier": 1.3})
        self.judge_case("stretched positions", TINY | SCALED_8, positions=(11 + 7 * torch.arange(self.seq_len)).expand(2, -1))
        self.judge_case("three bands", TINY | SCALED_8 | {"n_heads": 1, "n_kv_heads": 1, "n_layers": 1}, rows=1, seq_len=4096)
        self.judge_frequencies()

    def judge_frequencies(self):
        cases = list(itertools.product((1e4, 5e5), (16, 64, 128), (1.0, 8.0, 32.0)))
        run = titan.Run(self.args, {"model": self.model, "seq_len": 8, "seed": 0, "options": TINY, "ropes": [
            {"theta": theta, "head_dim": head_dim, "scaling_factor": factor} for theta, head_dim, factor in cases]},
            self.folder / "frequencies")
        for (theta, head_dim, factor), found in zip(cases, run.result["rope_frequencies"], strict=True):
            rope = {"rope_type": "default", "rope_theta": theta}
            if factor != 1:
                rope |= {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 8192}
            config = LlamaConfig(hidden_size=head_dim * 2, num_attention_heads=2, head_dim=head_dim, rope_parameters=rope,
                                 max_position_embeddings=131072)
            expected = LlamaRotaryEmbedding(config).inv_freq.double()
            found = torch.tensor(found, dtype=torch.float64)
            what = f"frequencies, theta {theta:g}, width {head_dim}, factor {factor:g}"
            self.report.equal(f"{what}: number", len(found), len(expected))
            self.report.at_most(f"{what}: max relative", ((found - expected) / expected).abs().max().item(), 1e-7)
        wavelengths = 2 * math.pi * 5e5 ** (torch.arange(64, dtype=torch.float64) / 64)  # theta 5e5, width 128
        bands = [wavelengths < 2048, (wavelengths >= 2048) & (wavelengths <= 8192), wavelengths > 8192]
        self.report.at_least("frequencies: fewest in a band of the scaling", float(min(band.sum() for band in bands)), 5)


class Llama2(Llama3):
    model = "llama2"

    def judge(self):
        self.judge_case("llama2", TINY | {"norm_eps": 1e-6, "n_kv_heads": None})


if __name__ == "__main__":
    judge(__doc__, Llama3, Llama2)
