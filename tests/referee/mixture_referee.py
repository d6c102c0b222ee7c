"""Compares the models with experts, mixtral and qwen3, with Hugging Face transformers (eager attention).

    mixture_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models in fp32: logits, loss and all gradients, with weights that Titan initialises (exported to a
folder that from_pretrained reads) and with wider ones; each token's experts, exactly, in fp64; ten steps of AdamW
compared with torch's; sizes and names of the published flavors. Controls show that the comparison can fail.
"""

import before_transformers

from transformers import MixtralForCausalLM, Qwen3MoeForCausalLM

from model_names import HEAD_NORMS, LLAMA
from model_referee import VOCAB, ModelReferee, judge

TINY = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": VOCAB, "hidden_dim": 48, "num_experts": 8}
TINY_QWEN3 = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "vocab_size": VOCAB, "num_experts": 8,
              "top_k": 2, "moe_hidden_dim": 48}
# content of the published config.json files
COMMON = {"tie_word_embeddings": False, "hidden_act": "silu", "rope_parameters": {"rope_theta": 1e6}}
MIXTRAL = COMMON | {"num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
                    "rms_norm_eps": 1e-5, "sliding_window": None, "architectures": ["MixtralForCausalLM"]}
QWEN3 = COMMON | {"head_dim": 128, "num_key_value_heads": 4, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
                  "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "rms_norm_eps": 1e-6,
                  "max_position_embeddings": 40960, "architectures": ["Qwen3MoeForCausalLM"]}


class Mixtral(ModelReferee):
    model = "mixtral"
    kind = MixtralForCausalLM
    block = LLAMA | {"mlp.gate": "moe.router.gate"}
    controlled = "two of eight"

    def gates(self, model):
        return {number: (layer.mlp.gate, lambda _, out: out[2]) for number, layer in enumerate(model.model.layers)}

    def judged(self, what, gradients, config):
        # with one chosen expert, its weight is 1 for any gate
        return [name for name in gradients if not (name.endswith("gate.weight") and config.num_experts_per_tok == 1)]

    def compare(self, what, run, model, *more):
        ours = super().compare(what, run, model, *more)
        if model.config.num_experts_per_tok == 1:
            gates = max(gradient.abs().max().item() for name, gradient in ours.items() if name.endswith("gate.weight"))
            self.report.at_most(f"{what}: gradient of gates that decide nothing", gates, 1e-5)
        return ours

    def controls(self, controls):
        mixtures = [layer.mlp for layer in controls.model.model.layers]
        gate_up = [mixture.experts.gate_up_proj for mixture in mixtures]
        controls.attribute("one expert less", [mixture.gate for mixture in mixtures], "top_k", 1)
        controls.weights("gate and up exchanged", gate_up, lambda weight: weight.roll(weight.shape[1] // 2, dims=1))
        controls.weights("another expert's output", [mixture.experts.down_proj for mixture in mixtures],
                         lambda weight: weight.roll(1, dims=0))

    def judge(self):
        self.judge_case("two of eight", TINY)
        self.judge_case("one of four", TINY | {"num_experts": 4, "top_k": 1})
        self.judge_case("five of six, tied", TINY | {"num_experts": 6, "top_k": 5, "enable_weight_tying": True})
        self.judge_case("wide heads", TINY | {"head_dim": 32, "norm_eps": 1e-6, "rope_theta": 1e4})
        self.judge_training("mixtral", TINY)
        self.judge_flavor("8x7B", MIXTRAL | {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                                             "num_attention_heads": 32, "max_position_embeddings": 32768})
        self.judge_flavor("8x22B", MIXTRAL | {"hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 56,
                                              "num_attention_heads": 48, "max_position_embeddings": 65536})


class Qwen3Moe(Mixtral):
    model = "qwen3"
    kind = Qwen3MoeForCausalLM
    block = Mixtral.block | HEAD_NORMS
    controlled = "qwen3, two of eight"

    def judge(self):
        self.judge_case("qwen3, two of eight", TINY_QWEN3)
        self.judge_case("qwen3, eight of sixteen, tied", TINY_QWEN3 | {"num_experts": 16, "top_k": 8, "enable_weight_tying": True})
        self.judge_case("qwen3, wide heads", TINY_QWEN3 | {"head_dim": 128, "n_kv_heads": 4, "rope_theta": 1e4})
        self.judge_training("qwen3", TINY_QWEN3)
        self.judge_flavor("30B-A3B", QWEN3 | {
            "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
            "num_attention_heads": 32}, 30_532_122_624)
        self.judge_flavor("235B-A22B", QWEN3 | {
            "hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 94,
            "num_attention_heads": 64, "rope_parameters": {"rope_theta": 5e6}}, 235_093_634_560)


if __name__ == "__main__":
    judge(__doc__, Mixtral, Qwen3Moe)
