// How others name Qwen3's weights and describe its size: transformers and torchtitan. Part of class
// Qwen3.
#include <algorithm>
#include <utility>

#include <titan/hf_config.h>

#include "../common/weight_names.h"
#include "qwen3.h"

namespace titan::qwen3 {
namespace {

/// Our options, the members of config.json that give them, and what transformers takes where these
/// are absent (Qwen3Config).
struct Size {
  const char* ours;
  const char* theirs;
  Value absent;
};

std::vector<Size> sizes() {
  return {{"dim", "hidden_size", 4096},
          {"hidden_dim", "intermediate_size", 22016},
          {"n_layers", "num_hidden_layers", 32},
          {"n_heads", "num_attention_heads", 32},
          {"n_kv_heads", "num_key_value_heads", 32},
          {"head_dim", "head_dim", 128},
          {"vocab_size", "vocab_size", 151936},
          {"max_position_embeddings", "max_position_embeddings", 32768},
          {"norm_eps", "rms_norm_eps", 1e-6},
          {"enable_weight_tying", "tie_word_embeddings", false}};
}

/// The value of a size there. A number of key heads that is null is that of the query heads.
Value found_in(const Value& config, const Size& size) {
  const Value* found = config.find(size.theirs);
  if (found && !found->is_null()) return *found;
  const bool is_null_heads = found && std::string_view(size.ours) == "n_kv_heads";
  const Value* heads = is_null_heads ? config.find("num_attention_heads") : nullptr;
  return heads ? *heads : size.absent;
}

std::vector<HfMember> config_members() {
  std::vector<HfMember> members = {{"model_type"}};
  for (const Size& size : sizes())
    if (std::string_view(size.ours) != "max_position_embeddings")
      members.push_back(
          {size.theirs, {}, [size](const Value& config) { return found_in(config, size); }});
  for (HfMember member : {HfMember{"hidden_act", "silu"}, HfMember{"attention_bias", false},
                          HfMember{"use_sliding_window", false}, HfMember{"layer_types"},
                          HfMember{"quantization_config"}})
    members.push_back(std::move(member));
  for (HfMember& member : hf_rope_members()) members.push_back(std::move(member));
  return members;
}

}  // namespace

/// All rotate halves of a head, as Titan does: renames.
std::vector<HfExchange::NameRule> Qwen3::name_rules(Naming naming) const {
  switch (naming) {
    case Naming::hugging_face:
      return models::hugging_face_rules(network_);
    case Naming::torchtitan:
      return models::meta_rules(network_, models::RotaryRows::halves, /*with_newer=*/true);
    case Naming::meta:
      break;
  }
  return {};
}

std::vector<std::string> Qwen3::ignored_names(Naming naming) const {
  // tables of rotary positions
  if (naming == Naming::hugging_face) return {"rotary_emb.inv_freq"};
  return {"rope_cache"};
}

Value Qwen3::hf_config() const {
  const Qwen3Options& o = options_;
  return Value::map(
      {{"architectures", Value::list({"Qwen3ForCausalLM"})},
       {"model_type", "qwen3"},
       {"hidden_size", o.dim},
       {"intermediate_size", o.hidden_dim},
       {"num_hidden_layers", o.n_layers},
       {"num_attention_heads", o.n_heads},
       {"num_key_value_heads", o.n_kv_heads},
       {"head_dim", o.head_dim},
       {"vocab_size", o.vocab_size},
       {"max_position_embeddings", std::max(context_.seq_len, o.max_position_embeddings)},
       {"rope_theta", o.rope_theta},
       {"rope_scaling", Value()},
       {"tie_word_embeddings", o.enable_weight_tying},
       {"rms_norm_eps", o.norm_eps},
       {"hidden_act", "silu"},
       {"attention_bias", false},
       {"attention_dropout", 0.0},
       {"use_sliding_window", false},
       {"sliding_window", Value()},
       {"max_window_layers", o.n_layers},
       {"initializer_range", 0.02},
       {"use_cache", true}});
}

std::optional<Value> Qwen3::options_for(const Value& theirs) const {
  const Value* type = theirs.find("model_type");
  if (!type || *type != Value("qwen3")) return std::nullopt;
  Value options = Value::map();
  for (const Size& size : sizes()) options[size.ours] = found_in(theirs, size);
  options["rope_theta"] = 10000.0;  // where config.json does not say
  // transformers 5 writes rope_theta among the other numbers of the rotation, earlier versions
  // beside them
  const Value* rope = theirs.find("rope_parameters");
  for (const Value* place : {&theirs, rope}) {
    const Value* theta = place && place->is_map() ? place->find("rope_theta") : nullptr;
    if (theta && !theta->is_null()) options["rope_theta"] = *theta;
  }
  return options;
}

std::vector<std::string> Qwen3::config_differences(const Value& theirs) const {
  Value other = theirs;
  const Value* types = theirs.find("layer_types");  // of all layers where all see everything
  if (types && types->is_list() &&
      std::all_of(types->as_list().begin(), types->as_list().end(),
                  [](const Value& type) { return type == Value("full_attention"); }))
    other["layer_types"] = Value();
  return hf_config_differences(config_members(), hf_config(), other);
}

}  // namespace titan::qwen3
