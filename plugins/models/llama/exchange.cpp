// How others name a Llama's weights and describe its size: transformers, Meta and torchtitan. Part
// of class Llama.
#include <algorithm>

#include <titan/hf_config.h>

#include "../common/weight_names.h"
#include "llama.h"

namespace titan::llama {
namespace {

/// With what transformers takes for a Llama where config.json does not say.
std::vector<HfMember> config_members() {
  std::vector<HfMember> members = {
      {"model_type"},
      {"hidden_size"},
      {"intermediate_size"},
      {"num_hidden_layers"},
      {"num_attention_heads"},
      {"num_key_value_heads",
       {},
       [](const Value& config) {
         const Value* heads = config.find("num_attention_heads");
         return heads ? *heads : Value();
       }},
      {"head_dim",
       {},
       [](const Value& config) {
         const Value* width = config.find("hidden_size");
         const Value* heads = config.find("num_attention_heads");
         const bool is_known = width && heads && width->is_integer() && heads->is_integer() &&
                               heads->as_integer() > 0;
         return is_known ? Value(width->as_integer() / heads->as_integer()) : Value();
       }},
      {"vocab_size"},
      {"rms_norm_eps", 1e-6},
      {"tie_word_embeddings", false},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"quantization_config"}};
  for (HfMember& member : hf_rope_members()) members.push_back(std::move(member));
  return members;
}

}  // namespace

/// Transformers rotates halves of a head, as Titan does: a rename. Meta's code, and torchtitan's
/// after it, rotates neighbours.
std::vector<HfExchange::NameRule> Llama::name_rules(Naming naming) const {
  switch (naming) {
    case Naming::hugging_face:
      return models::hugging_face_rules(network_);
    case Naming::meta:
      return models::meta_rules(network_, models::RotaryRows::pairs, /*with_newer=*/false);
    case Naming::torchtitan:
      return models::meta_rules(network_, models::RotaryRows::pairs, /*with_newer=*/true);
  }
  return {};
}

std::vector<std::string> Llama::ignored_names(Naming naming) const {
  // tables of rotary positions
  if (naming == Naming::hugging_face) return {"rotary_emb.inv_freq"};
  return {"rope.freqs", "freqs_cis"};
}

Value Llama::hf_config() const {
  const LlamaOptions& o = options_;
  const RopeScaling& r = o.rope_scaling;
  Value scaling;
  if (r.scaling_factor != 1)
    scaling =
        Value::map({{"rope_type", "llama3"},
                    {"factor", r.scaling_factor},
                    {"low_freq_factor", r.low_freq_factor},
                    {"high_freq_factor", r.high_freq_factor},
                    {"original_max_position_embeddings", r.original_max_position_embeddings}});
  return Value::map(
      {{"architectures", Value::list({"LlamaForCausalLM"})},
       {"model_type", "llama"},
       {"hidden_size", o.dim},
       {"intermediate_size", network_.ffn_dim},
       {"num_hidden_layers", o.n_layers},
       {"num_attention_heads", o.n_heads},
       {"num_key_value_heads", network_.n_kv_heads},
       {"head_dim", network_.head_dim},
       {"vocab_size", o.vocab_size},
       {"max_position_embeddings", std::max(context_.seq_len, o.max_position_embeddings)},
       {"rope_theta", o.rope_theta},
       {"rope_scaling", scaling},
       {"tie_word_embeddings", o.enable_weight_tying},
       {"rms_norm_eps", o.norm_eps},
       {"hidden_act", "silu"},
       {"attention_bias", false},
       {"mlp_bias", false},
       {"attention_dropout", 0.0},
       {"initializer_range", 0.02},
       {"use_cache", true}});
}

std::optional<Value> Llama::options_for(const Value& theirs) const {
  const auto member = [&](const char* name) -> const Value* {
    const Value* found = theirs.find(name);
    return found && !found->is_null() ? found : nullptr;
  };
  const Value* type = member("model_type");
  if (!type || !type->is_string() || type->as_string() != "llama") return std::nullopt;
  Value options = Value::map();
  const auto take = [&](const char* ours, const char* name) {
    if (const Value* found = member(name)) options[ours] = *found;
  };
  take("dim", "hidden_size");
  take("n_layers", "num_hidden_layers");
  take("n_heads", "num_attention_heads");
  take("n_kv_heads", "num_key_value_heads");
  take("head_dim", "head_dim");
  take("vocab_size", "vocab_size");
  options["norm_eps"] = 1e-6;  // where config.json does not say
  take("norm_eps", "rms_norm_eps");
  options["rope_theta"] = 10000.0;
  take("rope_theta", "rope_theta");
  take("max_position_embeddings", "max_position_embeddings");
  take("enable_weight_tying", "tie_word_embeddings");
  // the width of the feed-forward as it is, by the two numbers that we make it of
  if (const Value* width = member("intermediate_size"); width && width->is_integer()) {
    const Value* dim = member("hidden_size");
    if (dim && dim->is_integer() && dim->as_integer() > 0) {
      options["multiple_of"] = width->as_integer();
      options["ffn_dim_multiplier"] = static_cast<double>(width->as_integer()) /
                                      (8.0 / 3.0 * static_cast<double>(dim->as_integer())) * 0.99;
    }
  }
  // transformers 5 writes rope_theta among the others, earlier versions beside them
  const Value* rope = member("rope_scaling");
  if (!rope) rope = member("rope_parameters");
  if (!rope || !rope->is_map()) return options;
  if (const Value* theta = rope->find("rope_theta")) options["rope_theta"] = *theta;
  const Value* kind = rope->find("rope_type");
  if (!kind || !kind->is_string() || kind->as_string() != "llama3") return options;
  Value scaling = Value::map();
  const std::pair<const char*, const char*> names[] = {
      {"scaling_factor", "factor"},
      {"low_freq_factor", "low_freq_factor"},
      {"high_freq_factor", "high_freq_factor"},
      {"original_max_position_embeddings", "original_max_position_embeddings"}};
  for (const auto& [ours, name] : names)
    if (const Value* found = rope->find(name)) scaling[ours] = *found;
  options["rope_scaling"] = scaling;
  return options;
}

std::vector<std::string> Llama::config_differences(const Value& theirs) const {
  return hf_config_differences(config_members(), hf_config(), theirs);
}

}  // namespace titan::llama
