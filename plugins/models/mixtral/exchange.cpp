// How transformers names a Mixtral's weights and describes its size. Part of class Mixtral.
#include <algorithm>

#include <titan/hf_config.h>

#include "../common/weight_names.h"
#include "mixtral.h"

namespace titan::mixtral {
namespace {

/// With what transformers takes for a Mixtral where config.json does not say.
std::vector<HfMember> config_members() {
  std::vector<HfMember> members = {
      {"model_type"},
      {"hidden_size", 4096},
      {"intermediate_size", 14336},
      {"num_hidden_layers", 32},
      {"num_attention_heads", 32},
      {"num_key_value_heads", 8},
      {"head_dim",
       {},
       [](const Value& config) {
         const Value* width = config.find("hidden_size");
         const Value* heads = config.find("num_attention_heads");
         const bool is_known = width && heads && width->is_integer() && heads->is_integer() &&
                               heads->as_integer() > 0;
         return is_known ? Value(width->as_integer() / heads->as_integer()) : Value();
       }},
      {"vocab_size", 32000},
      {"num_local_experts", 8},
      {"num_experts_per_tok", 2},
      {"rms_norm_eps", 1e-5},
      {"tie_word_embeddings", false},
      {"hidden_act", "silu"},
      {"sliding_window"},
      {"router_jitter_noise", 0.0},
      {"quantization_config"}};
  for (HfMember& member : hf_rope_members()) members.push_back(std::move(member));
  return members;
}

}  // namespace

/// Transformers rotates halves of a head, as Titan does: renames.
std::vector<HfExchange::NameRule> Mixtral::name_rules(Naming naming) const {
  if (naming != Naming::hugging_face) return {};
  return models::hugging_face_rules(network_, {.mixture = {.gate = "block_sparse_moe.gate",
                                                           .experts = "block_sparse_moe.experts",
                                                           .w1 = "w1",
                                                           .w2 = "w2",
                                                           .w3 = "w3"}});
}

std::vector<std::string> Mixtral::ignored_names(Naming) const {
  return {"rotary_emb.inv_freq"};  // tables of rotary positions
}

Value Mixtral::hf_config() const {
  const MixtralOptions& o = options_;
  return Value::map(
      {{"architectures", Value::list({"MixtralForCausalLM"})},
       {"model_type", "mixtral"},
       {"hidden_size", o.dim},
       {"intermediate_size", o.hidden_dim},
       {"num_hidden_layers", o.n_layers},
       {"num_attention_heads", o.n_heads},
       {"num_key_value_heads", network_.n_kv_heads},
       {"head_dim", network_.head_dim},
       {"vocab_size", o.vocab_size},
       {"num_local_experts", o.num_experts},
       {"num_experts_per_tok", o.top_k},
       {"max_position_embeddings", std::max(context_.seq_len, o.max_position_embeddings)},
       {"rope_theta", o.rope_theta},
       {"tie_word_embeddings", o.enable_weight_tying},
       {"rms_norm_eps", o.norm_eps},
       {"hidden_act", "silu"},
       {"sliding_window", Value()},
       {"attention_dropout", 0.0},
       {"router_jitter_noise", 0.0},
       {"initializer_range", 0.02},
       {"use_cache", true}});
}

std::optional<Value> Mixtral::options_for(const Value& theirs) const {
  const auto member = [&](const char* name) -> const Value* {
    const Value* found = theirs.find(name);
    return found && !found->is_null() ? found : nullptr;
  };
  const Value* type = member("model_type");
  if (!type || !type->is_string() || type->as_string() != "mixtral") return std::nullopt;
  Value options = Value::map({{"n_kv_heads", 8}});  // where config.json does not say
  const auto take = [&](const char* ours, const char* name) {
    if (const Value* found = member(name)) options[ours] = *found;
  };
  take("dim", "hidden_size");
  take("hidden_dim", "intermediate_size");
  take("n_layers", "num_hidden_layers");
  take("n_heads", "num_attention_heads");
  take("n_kv_heads", "num_key_value_heads");
  take("head_dim", "head_dim");
  take("vocab_size", "vocab_size");
  take("num_experts", "num_local_experts");
  take("top_k", "num_experts_per_tok");
  take("norm_eps", "rms_norm_eps");
  take("rope_theta", "rope_theta");
  take("max_position_embeddings", "max_position_embeddings");
  take("enable_weight_tying", "tie_word_embeddings");
  // transformers 5 writes rope_theta among the others, earlier versions beside them
  if (const Value* rope = member("rope_parameters"); rope && rope->is_map())
    if (const Value* theta = rope->find("rope_theta")) options["rope_theta"] = *theta;
  return options;
}

std::vector<std::string> Mixtral::config_differences(const Value& theirs) const {
  return hf_config_differences(config_members(), hf_config(), theirs);
}

}  // namespace titan::mixtral
