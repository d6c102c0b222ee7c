"""Compares the model llama4 with Hugging Face transformers (eager attention).

    llama4_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models in fp32, in torchtitan v0.2.2's form and as published (chunks shorter than the sequence, layers
without positions, norms of queries and keys, the temperature of queries): logits, loss and all gradients, with weights
that Titan initialises (exported to a folder that from_pretrained reads) and with wider ones; each token's experts,
exactly, in fp64; ten steps of AdamW compared with torch's; sizes and names of the flavors. Controls show that the
comparison can fail.
"""

import before_transformers

import torch
import transformers
from transformers import Llama4ForCausalLM, Llama4TextConfig

from model_names import LLAMA, swiglu
from model_referee import VOCAB, ModelReferee, judge, without_memory

CHUNK = 40
TINY = {"dim": 64, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2, "vocab_size": VOCAB, "hidden_dim": 96, "moe_hidden_dim": 48,
        "num_experts": 8}
# heads of 16 elements have wavelengths on both sides of one limit of the scaling
SCALED = {"rope_scaling": {"scaling_factor": 16.0, "original_max_position_embeddings": 2048}}
IROPE = {"every_n_layers_nope": 4, "attention_chunk_size": CHUNK}
PUBLISHED = IROPE | {"nope_layer_offset": 3, "attn_temperature_tuning": True, "floor_scale": 16}
SCOUT = TINY | PUBLISHED | SCALED | {"use_qk_norm": True, "interleave_moe_layer_step": 1}
SIZES = {"hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48,
         "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048, "num_experts_per_tok": 1,
         "rms_norm_eps": 1e-5}
SCOUT_SIZES = SIZES | {"num_local_experts": 16, "interleave_moe_layer_step": 1, "max_position_embeddings": 10485760,
                       "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 16.0, "low_freq_factor": 1.0,
                                           "high_freq_factor": 1.0, "original_max_position_embeddings": 8192}}
MAVERICK_SIZES = SIZES | {"num_local_experts": 128, "interleave_moe_layer_step": 2, "max_position_embeddings": 1048576,
                          "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}
ALIKE = {"use_qk_norm": False, "attn_temperature_tuning": False, "no_rope_layers": [1] * 48, "layer_types": ["full_attention"] * 48}
IROPE_48 = {"use_qk_norm": False, "attn_temperature_tuning": False, "no_rope_layers": [int(i % 4 != 0) for i in range(48)]}
SCOUT_PARAMETERS, MAVERICK_PARAMETERS = 107_769_861_120, 400_711_848_960  # as torchtitan counts
FLAVORS = {  # the config of each flavor for transformers
    "Scout": (SCOUT_SIZES, SCOUT_PARAMETERS),
    "Maverick": (MAVERICK_SIZES | {"use_qk_norm": False}, MAVERICK_PARAMETERS),
    "17bx16e": (SCOUT_SIZES | ALIKE | {"attention_chunk_size": 10485760}, SCOUT_PARAMETERS),
    "17bx128e": (MAVERICK_SIZES | ALIKE | {"attention_chunk_size": 1048576}, MAVERICK_PARAMETERS),
    "17bx16e_irope": (SCOUT_SIZES | IROPE_48, SCOUT_PARAMETERS),
    "17bx128e_irope": (MAVERICK_SIZES | IROPE_48, MAVERICK_PARAMETERS),
}
# config members that transformers derives from others
FOLLOWING = ("moe_layers", "no_rope_layers", "layer_types", "attention_chunk_size", "use_qk_norm", "attn_temperature_tuning",
             "floor_scale", "attn_scale", "tie_word_embeddings", "hidden_act", "attention_bias")


def to_pairs(rows, heads):
    """Converts rows of heads whose halves rotate together to the order in which neighbours do."""
    return rows.view(heads, 2, -1, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)


def to_halves(rows, heads):
    return rows.view(heads, -1, 2, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)


class Llama4(ModelReferee):
    model = "llama4"
    kind = Llama4ForCausalLM
    implementations = {"attn_implementation": "eager"}
    block = {theirs: ours for theirs, ours in LLAMA.items() if theirs[-6:] not in ("q_proj", "k_proj")}
    block |= {"feed_forward.router": "moe.router.gate"} | swiglu("feed_forward", "feed_forward")
    block |= swiglu("feed_forward.shared_expert", "moe.shared_experts")
    controlled = "Scout"

    def join(self, part, own, config):
        """Neighbours rotate together; experts are transposed, with gates and ups in one tensor."""
        if part.startswith("self_attn."):
            one = part.removeprefix("self_attn.")[0]
            return to_pairs(own(f"attention.w{one}.weight"), self.heads(one, config))
        if part == "feed_forward.experts.gate_up_proj":
            return torch.cat([own("moe.experts.w1").transpose(1, 2), own("moe.experts.w3").transpose(1, 2)], dim=2)
        return own({"feed_forward.experts.down_proj": "moe.experts.w2"}[part]).transpose(1, 2)

    def split(self, part, tensor, config):
        if part.startswith("self_attn."):
            one = part.removeprefix("self_attn.")[0]
            return {f"attention.w{one}.weight": to_halves(tensor, self.heads(one, config))}
        if part == "feed_forward.experts.gate_up_proj":
            gates, ups = tensor.transpose(1, 2).chunk(2, dim=1)
            return {"moe.experts.w1": gates, "moe.experts.w3": ups}
        return {{"feed_forward.experts.down_proj": "moe.experts.w2"}[part]: tensor.transpose(1, 2)}

    def heads(self, one, config):
        return {"q": config.num_attention_heads, "k": config.num_key_value_heads}[one]

    def stored(self, name, run):
        config = Llama4TextConfig.from_dict(run.result["hf_config"])
        stored = self.to_theirs(run.tensors("parameters"), self.weights_of(without_memory(config)), config)
        named = {rule["theirs"] for rule in run.result["name_rules"]}
        plain = {theirs for theirs in named if not theirs.startswith("language_model.")}
        untied = {"lm_head.weight"}
        self.report.equal(f"{name}: names by the rules", sorted(plain - untied), sorted(stored.keys() - untied))
        self.report.equal(f"{name}: names with the prefix", sorted(named - plain), sorted(f"language_model.{own}" for own in plain))
        return stored

    def gates(self, model):
        return {number: (layer.feed_forward.router, lambda router, out: out[1].topk(router.top_k, dim=1).indices)
                for number, layer in enumerate(model.model.layers) if layer.is_moe_layer}

    def controls(self, controls):
        attention = [layer.self_attn for layer in controls.model.model.layers]
        gate_up = [layer.feed_forward.experts.gate_up_proj for layer in controls.model.model.layers]
        controls.attribute("a longer chunk", [controls.model.config], "attention_chunk_size", CHUNK + 1)
        controls.attribute("no temperature", attention[3:], "attn_temperature_tuning", False)
        controls.attribute("another epsilon of queries and keys", [layer.qk_norm for layer in attention[:3]], "eps", 0.3)
        controls.attribute("positions in the last layer", attention[3:], "use_rope", True)
        controls.attribute("no norm of queries and keys", attention[:1], "qk_norm", torch.nn.Identity())
        controls.weights("gate and up exchanged", gate_up, lambda weight: weight.roll(weight.shape[2] // 2, dims=2))

    def judge(self):
        transformers.utils.logging.set_verbosity_error()  # transformers warns about Llama 4's rotary scaling
        self.judge_case("as in v0.2.2", TINY)
        self.judge_case("as in v0.2.2, experts everywhere", TINY | SCALED | {"interleave_moe_layer_step": 1})
        self.judge_case("as in v0.2.2, irope", TINY | IROPE | SCALED)
        self.judge_case("Scout", SCOUT)
        self.judge_case("Maverick", TINY | PUBLISHED)
        self.judge_case("three of eight", SCOUT | {"top_k": 3})
        self.judge_case("wide heads, tied", SCOUT | {
            "head_dim": 32, "n_kv_heads": 1, "enable_weight_tying": True, "norm_eps": 1e-6})
        self.judge_training("as in v0.2.2", TINY)
        self.judge_training("Scout", SCOUT)
        for flavor, (described, parameters) in FLAVORS.items():
            expected = Llama4TextConfig(**described)
            self.judge_flavor(flavor, described | {key: getattr(expected, key) for key in FOLLOWING}, parameters)


if __name__ == "__main__":
    judge(__doc__, Llama4)
