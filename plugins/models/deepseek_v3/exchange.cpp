// How others name the weights of DeepSeek-V2 and -V3: transformers and DeepSeek, torchtitan. Part
// of class DeepseekV3.
#include <iterator>

#include "deepseek_v3.h"

namespace titan::deepseek_v3 {
namespace {

using models::BlockWeight;
using NameRule = HfExchange::NameRule;

/// Of all projections rows are theirs, pairs side by side in the rotated part.
std::vector<BlockWeight> attention_weights(bool has_query_latent) {
  std::vector<BlockWeight> weights = {{"attention.wq", "self_attn.q_proj"}};
  if (has_query_latent)
    weights = {{"attention.wq_a", "self_attn.q_a_proj"},
               {"attention.q_norm", "self_attn.q_a_layernorm"},
               {"attention.wq_b", "self_attn.q_b_proj"}};
  const BlockWeight others[] = {{"attention.wkv_a", "self_attn.kv_a_proj_with_mqa"},
                                {"attention.kv_norm", "self_attn.kv_a_layernorm"},
                                {"attention.wkv_b", "self_attn.kv_b_proj"},
                                {"attention.wo", "self_attn.o_proj"}};
  weights.insert(weights.end(), std::begin(others), std::end(others));
  return weights;
}

}  // namespace

models::WeightNames DeepseekV3::weight_names() const {
  return {
      .mixture = {.expert_bias = kind() == Kind::v2 ? nullptr : "mlp.gate.e_score_correction_bias"},
      .attention = attention_weights(options_.q_lora_rank > 0),
      .scales = "_scale_inv"};
}

/// Rows are in DeepSeek's order everywhere: renames.
std::vector<NameRule> DeepseekV3::name_rules(Naming naming) const {
  switch (naming) {
    case Naming::hugging_face:
      return models::hugging_face_rules(network_, weight_names());
    case Naming::torchtitan:
      return models::meta_rules(network_, models::RotaryRows::halves, /*with_newer=*/true,
                                weight_names());
    case Naming::meta:
      break;
  }
  return {};
}

std::vector<std::string> DeepseekV3::ignored_names(Naming naming) const {
  if (naming != Naming::hugging_face) return {"freqs_cis"};
  std::vector<std::string> names = {"rotary_emb.inv_freq"};
  if (kind() != Kind::v3) return names;
  // One more layer, which DeepSeek-V3 has to predict a token further: a block, its own norms,
  // embedding and head.
  models::Transformer longer = network_;
  longer.n_layers = options_.n_layers + 1;
  const std::string layer = "model.layers." + std::to_string(options_.n_layers) + ".";
  const auto add = [&](const std::string& name) {
    names.push_back(name);
    names.push_back(name + "_scale_inv");
  };
  for (const NameRule& rule : models::hugging_face_rules(longer, weight_names()))
    if (rule.theirs.starts_with(layer)) add(rule.theirs);
  for (const char* part :
       {"embed_tokens", "enorm", "hnorm", "eh_proj", "shared_head.norm", "shared_head.head"})
    add(layer + part + ".weight");
  return names;
}

}  // namespace titan::deepseek_v3
