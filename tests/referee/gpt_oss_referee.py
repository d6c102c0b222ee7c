"""Compares the model gpt_oss with Hugging Face transformers (eager attention).

    gpt_oss_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models in fp32: logits, loss and all gradients, with weights that Titan initialises (exported to a
folder that from_pretrained reads) and with wider ones; each token's experts, exactly, in fp64; ten steps of AdamW
compared with torch's; sizes and names of the published flavors. Sequences are longer than the window. Controls show
that the comparison can fail.
"""

import before_transformers

import torch
from transformers import GptOssConfig, GptOssForCausalLM

from model_names import LLAMA
from model_referee import VOCAB, ModelReferee, judge, without_memory

TINY = {"dim": 64, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "vocab_size": VOCAB, "num_experts": 8,
        "top_k": 2, "moe_hidden_dim": 48, "sliding_window_size": 20, "original_seq_len": 32}
PUBLISHED = {  # content of both config.json files
    "hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
    "vocab_size": 201088, "num_experts_per_tok": 4, "sliding_window": 128, "rms_norm_eps": 1e-5, "attention_bias": True,
    "max_position_embeddings": 131072, "swiglu_limit": 7.0, "tie_word_embeddings": False, "hidden_act": "silu",
    "rope_parameters": {"rope_theta": 150000.0}}


class GptOss(ModelReferee):
    model = "gpt_oss"
    kind = GptOssForCausalLM
    block = LLAMA | {"mlp.router": "moe.router.gate", "self_attn.sinks": "attention.sinks"}
    controlled = "two of eight"

    def join(self, part, own, config):
        """Gates and ups of an expert alternate; matrices are transposed."""
        bias = "_bias" if part.endswith("_bias") else ""
        if "gate_up" in part:
            rows = torch.stack([own(f"moe.experts.w1{bias}"), own(f"moe.experts.w3{bias}")], dim=2).flatten(1, 2)
        else:
            rows = own(f"moe.experts.w2{bias}")
        return rows if bias else rows.transpose(1, 2)

    def split(self, part, tensor, config):
        bias = "_bias" if part.endswith("_bias") else ""
        rows = tensor if bias else tensor.transpose(1, 2)
        if "gate_up" in part:
            return {f"moe.experts.w1{bias}": rows[:, ::2], f"moe.experts.w3{bias}": rows[:, 1::2]}
        return {f"moe.experts.w2{bias}": rows}

    def stored(self, name, run):
        config = GptOssConfig.from_dict(run.result["hf_config"])
        return self.to_theirs(run.tensors("parameters"), self.weights_of(without_memory(config)), config)

    def judged(self, what, gradients, config):
        # a key bias adds the same to all scores of a query: it has no gradient, except for rounding and sinks
        judged = [name for name in gradients if gradients[name].abs().max() > 1e-4]
        self.report.at_most(f"{what}: gradients too small to judge", len(gradients) - len(judged), config.num_hidden_layers)
        return judged

    def gates(self, model):
        return {number: (layer.mlp.router, lambda _, out: out[-1]) for number, layer in enumerate(model.model.layers)}

    def controls(self, controls):
        layer = controls.model.model.layers[1]
        controls.weights("no sinks", [layer.self_attn.sinks], lambda x: torch.full_like(x, -1e9))
        controls.weights("gate and up exchanged", [layer.mlp.experts.gate_up_proj],
                         lambda x: x.unflatten(2, (-1, 2)).flip(3).flatten(2))
        controls.weights("no bias of the last product", [layer.mlp.experts.down_proj_bias], torch.zeros_like)
        controls.weights("no bias of the output", [layer.self_attn.o_proj.bias], torch.zeros_like)

    def judge(self):
        self.judge_case("two of eight", TINY)
        self.judge_case("four of four, one key head", TINY | {"num_experts": 4, "top_k": 4, "n_kv_heads": 1})
        self.judge_case("a window beyond the row", TINY | {"sliding_window_size": 128, "rope_theta": 1e4, "rope_factor": 4.0})
        self.judge_case("tight limits", TINY | {"swiglu_limit": 1.25, "head_dim": 32, "norm_eps": 1e-6})
        self.judge_training("two of eight", TINY)
        self.judge_flavor("20b", PUBLISHED | {"num_hidden_layers": 24, "num_local_experts": 32}, 20_914_757_184)
        self.judge_flavor("120b", PUBLISHED | {"num_hidden_layers": 36, "num_local_experts": 128}, 116_829_156_672)


if __name__ == "__main__":
    judge(__doc__, GptOss)
