// How others name Qwen3's weights and describe its size: transformers and torchtitan. Part of class
// Qwen3.
#include <algorithm>
#include <string_view>
#include <utility>

#include <titan/hf_config.h>

#include "../common/weight_names.h"
#include "qwen3.h"

namespace titan::qwen3 {
namespace {

constexpr const char* kDense = "qwen3";
constexpr const char* kWithExperts = "qwen3_moe";

/// Our options, the members of config.json that give them, and what transformers takes where these
/// are absent (Qwen3Config, Qwen3MoeConfig).
struct Size {
  const char* ours;
  const char* theirs;
  Value absent;  // unset: follows from others
};

std::vector<Size> sizes(bool has_experts) {
  if (has_experts)
    return {{"dim", "hidden_size", 2048},
            {"hidden_dim", "intermediate_size", 6144},
            {"n_layers", "num_hidden_layers", 24},
            {"n_heads", "num_attention_heads", 32},
            {"n_kv_heads", "num_key_value_heads", 4},
            {"head_dim", "head_dim", {}},
            {"vocab_size", "vocab_size", 151936},
            {"max_position_embeddings", "max_position_embeddings", 32768},
            {"norm_eps", "rms_norm_eps", 1e-6},
            {"enable_weight_tying", "tie_word_embeddings", false},
            {"num_experts", "num_experts", 128},
            {"top_k", "num_experts_per_tok", 8},
            {"moe_hidden_dim", "moe_intermediate_size", 768}};
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
  const std::string_view ours = size.ours;
  const auto integer = [&](const char* name, int64_t absent) {
    const Value* found = config.find(name);
    return found && found->is_integer() ? found->as_integer() : absent;
  };
  const Value* found = config.find(size.theirs);
  if (!found && ours == "num_experts") found = config.find("num_local_experts");  // transformers 5
  if (found && !found->is_null()) return *found;
  if (ours == "head_dim" && size.absent.is_null())
    return integer("hidden_size", 2048) / std::max<int64_t>(integer("num_attention_heads", 32), 1);
  const bool is_null_heads = found && ours == "n_kv_heads";
  const Value* heads = is_null_heads ? config.find("num_attention_heads") : nullptr;
  return heads ? *heads : size.absent;
}

std::vector<HfMember> config_members(bool has_experts) {
  std::vector<HfMember> members = {{"model_type"}};
  for (const Size& size : sizes(has_experts))
    if (std::string_view(size.ours) != "max_position_embeddings")
      members.push_back(
          {size.theirs, {}, [size](const Value& config) { return found_in(config, size); }});
  for (HfMember member : {HfMember{"hidden_act", "silu"}, HfMember{"attention_bias", false},
                          HfMember{"use_sliding_window", false}, HfMember{"layer_types"},
                          HfMember{"quantization_config"}})
    members.push_back(std::move(member));
  // every layer has experts, and their weights add up to one
  if (has_experts)
    for (HfMember member :
         {HfMember{"decoder_sparse_step", 1}, HfMember{"mlp_only_layers", Value::list({})},
          HfMember{"norm_topk_prob", false}})
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
  Value config = Value::map(
      {{"architectures", Value::list({"Qwen3ForCausalLM"})},
       {"model_type", kDense},
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
  if (!network_.mixture) return config;
  config["architectures"] = Value::list({"Qwen3MoeForCausalLM"});
  config["model_type"] = kWithExperts;
  config["num_experts"] = o.num_experts;
  config["num_experts_per_tok"] = o.top_k;
  config["moe_intermediate_size"] = o.moe_hidden_dim;
  config["norm_topk_prob"] = true;
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = Value::list({});
  config["output_router_logits"] = false;
  config["router_aux_loss_coef"] = 0.001;
  return config;
}

std::optional<Value> Qwen3::options_for(const Value& theirs) const {
  const Value* type = theirs.find("model_type");
  const bool has_experts = type && *type == Value(kWithExperts);
  if (!type || (!has_experts && *type != Value(kDense))) return std::nullopt;
  Value options = Value::map();
  for (const Size& size : sizes(has_experts)) options[size.ours] = found_in(theirs, size);
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
  return hf_config_differences(config_members(network_.mixture.has_value()), hf_config(), other);
}

}  // namespace titan::qwen3
