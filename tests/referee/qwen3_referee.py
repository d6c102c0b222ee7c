"""Compares the qwen3 plugin with Hugging Face transformers (eager attention, fp32).

    qwen3_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models: logits, loss and all gradients, with weights that Titan initialises (exported to a folder that
from_pretrained reads) and with wider ones; ten steps of AdamW; for every flavor config.json, names and shapes of the
published model, on the meta device. Controls show that the comparison can fail: it must find deliberate mistakes in the
referee's model.
"""

import before_transformers

import torch
from transformers import Qwen3ForCausalLM

from model_names import HEAD_NORMS, LLAMA, swiglu
from model_referee import VOCAB, ModelReferee, judge

TINY = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "hidden_dim": 96, "vocab_size": VOCAB}
TIED = {"enable_weight_tying": True}
# from the config.json files that the models were published with: hidden, intermediate, layers, heads, tied
PUBLISHED = {
    "0.6B": (1024, 3072, 28, 16, True, 596_049_920),
    "1.7B": (2048, 6144, 28, 16, True, 1_720_574_976),
    "4B": (2560, 9728, 36, 32, True, 4_022_468_096),
    "8B": (4096, 12288, 36, 32, False, 8_190_735_360),
    "14B": (5120, 17408, 40, 40, False, 14_768_307_200),
    "32B": (5120, 25600, 64, 64, False, 32_762_123_264),
}
COMMON = {"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "rms_norm_eps": 1e-6, "hidden_act": "silu",
          "attention_bias": False, "use_sliding_window": False, "max_position_embeddings": 40960,
          "architectures": ["Qwen3ForCausalLM"], "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}


class Qwen3(ModelReferee):
    model = "qwen3"
    kind = Qwen3ForCausalLM
    seq_len = 200
    implementations = {"attn_implementation": "eager"}
    block = LLAMA | HEAD_NORMS | swiglu("mlp", "feed_forward")
    controlled = "gqa"

    def controls(self, controls):
        attention = [layer.self_attn for layer in controls.model.model.layers]
        norms = [norm.weight for layer in attention for norm in (layer.q_norm, layer.k_norm)]

        def exchange():
            for layer in attention:
                layer.q_norm, layer.k_norm = layer.k_norm, layer.q_norm

        controls.weights("elements of the norms in another order", norms, lambda weight: weight.roll(weight.numel() // 2))
        controls.config("another base of rotation", rope_parameters={"rope_type": "default", "rope_theta": 5e5})
        exchange()
        controls.see("norms of queries and keys the other way round")
        exchange()
        for layer in attention:
            layer.q_norm = layer.k_norm = torch.nn.Identity()
        controls.see("no norms of queries and keys")  # the last control, because the model stays without norms

    def judge(self):
        self.judge_case("gqa", TINY)
        self.judge_case("tied", TINY | TIED)
        self.judge_case("wide heads", TINY | {"head_dim": 128, "n_layers": 1})  # as published: H * hd is more than dim
        self.judge_case("narrow heads", TINY | {"head_dim": 8, "n_kv_heads": 4})
        self.judge_case("one kv head", TINY | TIED | {"n_kv_heads": 1, "rope_theta": 1e4, "norm_eps": 1e-3})
        self.judge_case("stretched positions", TINY, positions=(11 + 7 * torch.arange(self.seq_len)).expand(2, -1))
        self.judge_case("long", TINY | {"n_heads": 1, "n_kv_heads": 1, "n_layers": 1}, rows=1, seq_len=2048)
        self.judge_training("plain", TINY, seq_len=64)
        self.judge_training("tied", TINY | TIED | {"head_dim": 32}, seq_len=64)
        for flavor, (hidden, intermediate, layers, heads, tied, parameters) in PUBLISHED.items():
            self.judge_flavor(flavor, COMMON | {
                "hidden_size": hidden, "intermediate_size": intermediate, "num_hidden_layers": layers, "num_attention_heads": heads,
                "tie_word_embeddings": tied, "layer_types": ["full_attention"] * layers}, parameters)


if __name__ == "__main__":
    judge(__doc__, Qwen3)
