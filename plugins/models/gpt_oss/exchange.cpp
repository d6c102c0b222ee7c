// How others name gpt-oss's weights and describe its size: transformers and torchtitan. Part of
// class GptOss.
#include <algorithm>
#include <utility>

#include <titan/hf_config.h>

#include "../common/weight_names.h"
#include "gpt_oss.h"

namespace titan::gpt_oss {
namespace {

using NameRule = HfExchange::NameRule;

/// Gates are the even of theirs, ups the odd ones.
TensorCut interleaved(int64_t dim, int64_t which) {
  return TensorCut::every(dim, 2, which);
}

/// Hugging Face's, of what a layer has beside the weights of every Transformer. Experts come in
/// bf16, transposed, or as MXFP4 blocks, as they are.
std::vector<NameRule> hugging_face_layer(const std::string& ours, const std::string& theirs) {
  std::vector<NameRule> rules;
  for (const auto& [own, name] :
       {std::pair("wq", "q_proj"), {"wk", "k_proj"}, {"wv", "v_proj"}, {"wo", "o_proj"}})
    rules.push_back({ours + "attention." + own + ".bias", theirs + "self_attn." + name + ".bias"});
  rules.push_back({ours + "attention.sinks", theirs + "self_attn.sinks"});
  for (const char* part : {".weight", ".bias"})
    rules.push_back({ours + "moe.router.gate" + part, theirs + "mlp.router" + part});
  const std::string experts = ours + "moe.experts.", their_experts = theirs + "mlp.experts.";
  for (const auto& [own, which] : {std::pair("w1", 0), {"w3", 1}}) {
    rules.push_back({.ours = experts + own,
                     .theirs = their_experts + "gate_up_proj",
                     .of_theirs = {interleaved(2, which)},
                     .order = {0, 2, 1}});
    rules.push_back({.ours = experts + own,
                     .theirs = their_experts + "gate_up_proj_blocks",
                     .of_theirs = {interleaved(1, which)},
                     .scales = their_experts + "gate_up_proj_scales"});
    rules.push_back({.ours = experts + own + "_bias",
                     .theirs = their_experts + "gate_up_proj_bias",
                     .of_theirs = {interleaved(1, which)}});
  }
  rules.push_back(
      {.ours = experts + "w2", .theirs = their_experts + "down_proj", .order = {0, 2, 1}});
  rules.push_back({.ours = experts + "w2",
                   .theirs = their_experts + "down_proj_blocks",
                   .scales = their_experts + "down_proj_scales"});
  rules.push_back({experts + "w2_bias", their_experts + "down_proj_bias"});
  return rules;
}

/// torchtitan v0.2.2's: gates and ups in one matrix, row by row.
std::vector<NameRule> torchtitan_layer(const std::string& layer, bool has_expert_bias) {
  std::vector<NameRule> rules;
  const auto same = [&](const std::string& name) { rules.push_back({layer + name, layer + name}); };
  for (const char* name : {"wq", "wk", "wv", "wo"})
    for (const char* part : {".weight", ".bias"}) same(std::string("attention.") + name + part);
  for (const char* name : {"attention.sinks", "attention_norm.weight", "ffn_norm.weight",
                           "moe.router.gate.weight", "moe.router.gate.bias"})
    same(name);
  if (has_expert_bias) same("moe.expert_bias");
  const std::string experts = layer + "moe.experts.";
  for (const auto& [own, which] : {std::pair("w1", 0), {"w3", 1}}) {
    rules.push_back({.ours = experts + own,
                     .theirs = experts + "mlp1_weight",
                     .of_theirs = {interleaved(1, which)}});
    rules.push_back({.ours = experts + own + "_bias",
                     .theirs = experts + "mlp1_bias",
                     .of_theirs = {interleaved(1, which)}});
  }
  rules.push_back({experts + "w2", experts + "mlp2_weight"});
  rules.push_back({experts + "w2_bias", experts + "mlp2_bias"});
  return rules;
}

/// Our options, the members of config.json that give them, and what transformers takes where these
/// are absent (GptOssConfig).
struct Size {
  const char* ours;
  const char* theirs;
  Value absent;
};
std::vector<Size> sizes() {
  return {{"dim", "hidden_size", 2880},
          {"n_layers", "num_hidden_layers", 36},
          {"n_heads", "num_attention_heads", 64},
          {"n_kv_heads", "num_key_value_heads", 8},
          {"head_dim", "head_dim", 64},
          {"moe_hidden_dim", "intermediate_size", 2880},
          {"num_experts", "num_local_experts", 128},
          {"top_k", "num_experts_per_tok", 4},
          {"swiglu_limit", "swiglu_limit", 7.0},
          {"sliding_window_size", "sliding_window", 128},
          {"vocab_size", "vocab_size", 201088},
          {"norm_eps", "rms_norm_eps", 1e-5},
          {"max_position_embeddings", "max_position_embeddings", 131072}};
}

/// Where positions are described: rope_scaling (transformers 4) or rope_parameters (5); null: none.
const Value* rope_of(const Value& config) {
  for (const char* table : {"rope_parameters", "rope_scaling"})
    if (const Value* found = config.find(table); found && found->is_map()) return found;
  return nullptr;
}

Value found_or(const Value* map, const char* name, Value absent) {
  const Value* found = map ? map->find(name) : nullptr;
  return found && !found->is_null() ? *found : absent;
}

/// "sliding_attention" for layers of even index, "full_attention" for the others.
Value layer_types(int64_t n_layers) {
  Value types = Value::list();
  for (int64_t i = 0; i < n_layers; ++i)
    types.as_list().push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
  return types;
}

std::vector<HfMember> config_members(int64_t n_layers) {
  std::vector<HfMember> members = {{"model_type"}};
  for (const Size& size : sizes())
    if (std::string_view(size.ours) != "max_position_embeddings")
      members.push_back({size.theirs, size.absent});
  for (HfMember member : {HfMember{"tie_word_embeddings", false}, HfMember{"hidden_act", "silu"},
                          HfMember{"attention_bias", true}, HfMember{"truncate", false},
                          HfMember{"layer_types", layer_types(n_layers)}})
    members.push_back(std::move(member));
  for (HfMember& member : hf_rope_members()) members.push_back(std::move(member));
  return members;
}

}  // namespace

/// All rotate halves of a head, as Titan does.
std::vector<NameRule> GptOss::name_rules(Naming naming) const {
  if (naming == Naming::hugging_face)
    return models::hugging_face_rules(network_, {.mixture_rules = hugging_face_layer});
  if (naming != Naming::torchtitan) return {};
  std::vector<NameRule> rules = {{"tok_embeddings.weight", "tok_embeddings.weight"}};
  for (int64_t i = 0; i < options_.n_layers; ++i)
    for (NameRule& rule :
         torchtitan_layer("layers." + std::to_string(i) + ".", options_.load_balance_coeff > 0))
      rules.push_back(std::move(rule));
  rules.push_back({"norm.weight", "norm.weight"});
  rules.push_back({"output.weight", "output.weight"});
  return rules;
}

std::vector<std::string> GptOss::ignored_names(Naming naming) const {
  // tables of rotary positions
  if (naming == Naming::hugging_face) return {"rotary_emb.inv_freq"};
  return {"rope_cache"};
}

Value GptOss::hf_config() const {
  const GptOssOptions& o = options_;
  return Value::map(
      {{"architectures", Value::list({"GptOssForCausalLM"})},
       {"model_type", "gpt_oss"},
       {"hidden_size", o.dim},
       {"intermediate_size", o.moe_hidden_dim},
       {"num_hidden_layers", o.n_layers},
       {"num_attention_heads", o.n_heads},
       {"num_key_value_heads", o.n_kv_heads},
       {"head_dim", o.head_dim},
       {"vocab_size", o.vocab_size},
       {"num_local_experts", o.num_experts},
       {"num_experts_per_tok", o.top_k},
       {"swiglu_limit", o.swiglu_limit},
       {"sliding_window", o.sliding_window_size},
       {"layer_types", layer_types(o.n_layers)},
       {"max_position_embeddings", std::max(context_.seq_len, o.max_position_embeddings)},
       {"initial_context_length", o.original_seq_len},
       {"rope_theta", o.rope_theta},
       {"rope_scaling", Value::map({{"rope_type", "yarn"},
                                    {"factor", o.rope_factor},
                                    {"original_max_position_embeddings", o.original_seq_len},
                                    {"beta_fast", o.beta_fast},
                                    {"beta_slow", o.beta_slow},
                                    {"truncate", false}})},
       {"rms_norm_eps", o.norm_eps},
       {"hidden_act", "silu"},
       {"attention_bias", true},
       {"attention_dropout", 0.0},
       {"tie_word_embeddings", false},
       {"output_router_logits", false},
       {"router_aux_loss_coef", 0.9},
       {"initializer_range", 0.02},
       {"use_cache", true}});
}

std::optional<Value> GptOss::options_for(const Value& theirs) const {
  if (found_or(&theirs, "model_type", {}) != Value("gpt_oss")) return std::nullopt;
  Value options = Value::map();
  for (const Size& size : sizes()) options[size.ours] = found_or(&theirs, size.theirs, size.absent);
  const Value* rope = rope_of(theirs);
  options["rope_theta"] = found_or(rope, "rope_theta", found_or(&theirs, "rope_theta", 150000.0));
  options["rope_factor"] = found_or(rope, "factor", 32.0);
  options["original_seq_len"] = found_or(rope, "original_max_position_embeddings", 4096);
  options["beta_fast"] = found_or(rope, "beta_fast", 32.0);
  options["beta_slow"] = found_or(rope, "beta_slow", 1.0);
  return options;
}

std::vector<std::string> GptOss::config_differences(const Value& theirs) const {
  return hf_config_differences(config_members(options_.n_layers), hf_config(), theirs);
}

}  // namespace titan::gpt_oss
