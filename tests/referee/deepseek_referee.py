"""Compares the model deepseek_v3, as DeepSeek-V3 and as DeepSeek-V2, with Hugging Face transformers (eager attention).

    deepseek_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models in fp32: logits, loss and all gradients, with weights that Titan initialises (exported to a
folder that from_pretrained reads) and with wider ones, including router biases; each token's experts, exactly, with
fp64 everywhere except in transformers' gate; ten steps of AdamW compared with torch's; sizes and names of the published
flavors. Controls show that the comparison can fail.
"""

import before_transformers

import torch
from transformers import DeepseekV2ForCausalLM, DeepseekV3ForCausalLM

from model_names import swiglu
from model_referee import VOCAB, ModelReferee, judge

TINY = {"dim": 64, "inter_dim": 96, "moe_inter_dim": 48, "n_layers": 3, "n_heads": 4, "vocab_size": VOCAB, "kv_lora_rank": 32,
        "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "num_experts": 8, "top_k": 2, "norm_eps": 1e-6,
        "yarn": "always", "original_seq_len": 32, "load_balance_coeff": 1e-3}
V3 = TINY | {"q_lora_rank": 24, "num_shared_experts": 1, "score_func": "sigmoid", "route_norm": True, "route_scale": 2.5,
             "num_expert_groups": 4, "num_limited_groups": 2}
V2 = TINY | {"mscale": 0.7}
COMMON = {  # common content of the config.json files
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "hidden_act": "silu",
    "attention_bias": False, "tie_word_embeddings": False, "max_position_embeddings": 163840, "moe_layer_freq": 1,
    "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "original_max_position_embeddings": 4096,
                        "beta_fast": 32.0, "beta_slow": 1.0}}
LITE = COMMON | {
    "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27,
    "first_k_dense_replace": 1, "num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": None, "vocab_size": 102400,
    "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "n_group": 1, "topk_group": 1, "topk_method": "greedy",
    "norm_topk_prob": False, "routed_scaling_factor": 1.0, "model_type": "deepseek_v2"}
LARGE_V2 = COMMON | {
    "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 60,
    "first_k_dense_replace": 1, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "vocab_size": 102400,
    "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6, "n_group": 8, "topk_group": 3,
    "topk_method": "group_limited_greedy", "norm_topk_prob": False, "routed_scaling_factor": 16.0, "model_type": "deepseek_v2"}
LARGE_V3 = COMMON | {
    "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
    "first_k_dense_replace": 3, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "vocab_size": 129280,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
    "topk_method": "noaux_tc", "norm_topk_prob": True, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
    "model_type": "deepseek_v3"}


class DeepseekV3(ModelReferee):
    model = "deepseek_v3"
    kind = DeepseekV3ForCausalLM
    block = {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate": "moe.router.gate",
             "mlp.gate.e_score_correction_bias": "moe.expert_bias"}
    block |= {f"self_attn.{theirs}": f"attention.{ours}" for theirs, ours in (
        ("q_proj", "wq"), ("q_a_proj", "wq_a"), ("q_a_layernorm", "q_norm"), ("q_b_proj", "wq_b"), ("kv_a_proj_with_mqa", "wkv_a"),
        ("kv_a_layernorm", "kv_norm"), ("kv_b_proj", "wkv_b"), ("o_proj", "wo"))}
    block |= swiglu("mlp", "feed_forward") | swiglu("mlp.shared_experts", "moe.shared_experts")
    controlled = "v3"

    def weights_of(self, model):
        """Parameters and the biases of the router."""
        return super().weights_of(model) | {
            name: buffer for name, buffer in model.named_buffers() if name.endswith("e_score_correction_bias")}

    def gates(self, model):
        """Computes in fp32 for any dtype of the model, so that only scores which are equal in fp32 can lead to
        different choices."""
        return {number: (layer.mlp.gate, lambda _, out: out[2]) for number, layer in enumerate(model.model.layers)
                if hasattr(layer.mlp, "gate")}

    def controls(self, controls):
        layers = controls.model.model.layers
        gates = [gate for gate, _ in self.gates(controls.model).values()]
        attentions = [layer.self_attn for layer in layers]
        controls.weights("no biases of the choice", [gate.e_score_correction_bias for gate in gates], torch.zeros_like)
        controls.weights("no shared expert", [layers[1].mlp.shared_experts.down_proj.weight], torch.zeros_like)
        controls.weights("keys of another head", [attentions[0].kv_b_proj.weight],
                         lambda weight: weight.roll(weight.shape[0] // 4, dims=0))
        controls.attribute("halves of a head rotate together", [controls.model.config], "rope_interleave", False)
        controls.attribute("one group less", gates, "topk_group", gates[0].topk_group - 1)
        controls.attribute("scores without YaRN's factor", attentions, "scaling", attentions[0].qk_head_dim**-0.5)

    def judge(self):
        self.judge_case("v3", V3)
        self.judge_case("v3, without groups, latent of queries and YaRN", V3 | {
            "q_lora_rank": 0, "num_expert_groups": 0, "num_limited_groups": 0, "rope_factor": 1.0, "top_k": 3})
        self.judge_case("v3, wide values, plain weights", V3 | {
            "v_head_dim": 40, "route_norm": False, "route_scale": 1.0, "n_dense_layers": 0, "mscale": 0.5})
        self.judge_training("deepseek_v3", V3)
        self.judge_flavor("671B", LARGE_V3, 671_026_404_352, {"yarn": "always"})


class DeepseekV2(DeepseekV3):
    kind = DeepseekV2ForCausalLM

    def judge(self):
        self.judge_case("v2", V2)
        self.judge_case("v2, groups and latent of queries", V2 | {
            "q_lora_rank": 24, "num_expert_groups": 4, "num_limited_groups": 2, "group_score": "best", "route_scale": 4.0,
            "qk_rope_head_dim": 16, "rope_theta": 5e4})
        self.judge_training("deepseek_v2", V2)
        self.judge_flavor("16B", LITE, 15_706_484_224, {"yarn": "always"})
        self.judge_flavor("236B", LARGE_V2, 235_741_434_880, {"yarn": "always"})


if __name__ == "__main__":
    judge(__doc__, DeepseekV3, DeepseekV2)
