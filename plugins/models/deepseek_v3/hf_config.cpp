// What config.json says of a DeepSeek-V2 or -V3, and back: in the words of DeepSeek and
// transformers. Part of class DeepseekV3.
#include <algorithm>
#include <string_view>
#include <utility>

#include <titan/hf_config.h>

#include "deepseek_v3.h"

namespace titan::deepseek_v3 {
namespace {

constexpr const char* kV2 = "deepseek_v2";
constexpr const char* kV3 = "deepseek_v3";
/// Of a network that transformers has not: it refuses the word, instead of computing another one.
constexpr const char* kOther = "titan_deepseek";
constexpr double kTheirLatentNormEps = 1e-6;

/// Our options, the members of config.json that give them, and what transformers takes where these
/// are absent (DeepseekV2Config, DeepseekV3Config).
struct Size {
  const char* ours;
  const char* theirs;
  Value absent;
};

std::vector<Size> sizes(bool is_v2) {
  const auto of = [&](Value v2, Value v3) { return is_v2 ? std::move(v2) : std::move(v3); };
  return {{"dim", "hidden_size", of(4096, 7168)},
          {"inter_dim", "intermediate_size", of(11008, 18432)},
          {"moe_inter_dim", "moe_intermediate_size", of(1407, 2048)},
          {"n_layers", "num_hidden_layers", of(32, 61)},
          {"n_dense_layers", "first_k_dense_replace", of(0, 3)},
          {"n_heads", "num_attention_heads", of(32, 128)},
          {"vocab_size", "vocab_size", of(102400, 129280)},
          {"q_lora_rank", "q_lora_rank", 1536},
          {"kv_lora_rank", "kv_lora_rank", 512},
          {"qk_nope_head_dim", "qk_nope_head_dim", 128},
          {"qk_rope_head_dim", "qk_rope_head_dim", 64},
          {"v_head_dim", "v_head_dim", 128},
          {"num_experts", "n_routed_experts", of(64, 256)},
          {"num_shared_experts", "n_shared_experts", of(2, 1)},
          {"top_k", "num_experts_per_tok", of({}, 8)},
          {"score_func", "scoring_func", of("softmax", "sigmoid")},
          {"route_norm", "norm_topk_prob", of(false, true)},
          {"route_scale", "routed_scaling_factor", of(1.0, 2.5)},
          {"num_expert_groups", "n_group", of(0, 8)},
          {"num_limited_groups", "topk_group", of(0, 4)},
          {"norm_eps", "rms_norm_eps", 1e-6},
          {"latent_norm_eps", "latent_norm_eps", kTheirLatentNormEps},
          {"max_position_embeddings", "max_position_embeddings", of(2048, 4096)}};
}

bool is_v2_config(const Value& config) {
  const Value* type = config.find("model_type");
  return type && *type == Value(kV2);
}

/// Whether weights are stored in the one form of fewer bits that is read (NameRule::scales).
bool is_blockwise_float8(const Value& quantization) {
  const Value* method = quantization.find("quant_method");
  const Value* blocks = quantization.find("weight_block_size");
  return method && *method == Value("fp8") && blocks && *blocks == Value::list({128, 128});
}

/// One way to say what can be said in several: 0 where there is no latent of queries, and no groups
/// where no expert is out of reach.
Value in_one_way(Value config) {
  const bool is_v2 = is_v2_config(config);
  const auto value_of = [&](const char* name) {
    const Value* found = config.find(name);
    return found ? *found : Value();
  };
  if (const Value* rank = config.find("q_lora_rank"); rank && rank->is_null())
    config["q_lora_rank"] = 0;
  const Value method = value_of("topk_method");
  if (method.is_null() || (!is_v2 && method == Value("noaux_tc")))
    config["topk_method"] = is_v2 ? "greedy" : "noaux_tc";
  const Value* groups = config.find("n_group");
  const bool has_groups = groups ? groups->is_integer() && groups->as_integer() > 1 : !is_v2;
  if (!has_groups || config.at("topk_method") == Value("greedy"))
    for (const char* name : {"n_group", "topk_group"}) config[name] = 0;
  if (is_blockwise_float8(value_of("quantization_config"))) config["quantization_config"] = Value();
  return config;
}

/// The factor on cos and sin that follows from YaRN's other numbers.
Value attention_factor(const Value& config) {
  const auto number = [&](const char* name) {
    const Value* found = config.find(name);
    return found && (found->is_integer() || found->is_number()) ? found->as_number() : 0.0;
  };
  if (number("factor") <= 1) return 1.0;
  const double of_queries = number("mscale"), of_all = number("mscale_all_dim");
  const auto amplitude = [&](double mscale) {
    return nn::yarn_amplitude(number("factor"), mscale);
  };
  return of_queries != 0 && of_all != 0 ? amplitude(of_queries) / amplitude(of_all) : amplitude(1);
}

std::vector<HfMember> config_members(bool is_v2) {
  std::vector<HfMember> members = {{"model_type"}};
  for (const Size& size : sizes(is_v2))
    if (std::string_view(size.ours) != "max_position_embeddings")
      members.push_back({size.theirs, size.absent});
  members.push_back({"num_key_value_heads", {}, [](const Value& config) {
                       const Value* heads = config.find("num_attention_heads");
                       return heads ? *heads : Value();
                     }});
  for (HfMember member :
       {HfMember{"topk_method"}, HfMember{"moe_layer_freq", 1}, HfMember{"hidden_act", "silu"},
        HfMember{"attention_bias", false}, HfMember{"mlp_bias", false},
        HfMember{"tie_word_embeddings", false}, HfMember{"rope_interleave", true},
        HfMember{"truncate", true}, HfMember{"quantization_config"}})
    members.push_back(std::move(member));
  for (HfMember& member : hf_rope_members()) {
    if (member.name == "mscale") continue;  // what it does is in attention_factor
    if (member.name == "mscale_all_dim") member.absent = 0.0;
    if (member.name == "attention_factor") member.derived = attention_factor;
    members.push_back(std::move(member));
  }
  return members;
}

/// Where positions are described: rope_scaling (transformers 4) or rope_parameters (5); null: none.
const Value* rope_table(const Value& config) {
  for (const char* table : {"rope_parameters", "rope_scaling"})
    if (const Value* found = config.find(table); found && found->is_map()) return found;
  return nullptr;
}

Value found_or(const Value* map, const char* name, Value absent) {
  const Value* found = map ? map->find(name) : nullptr;
  return found && !found->is_null() ? *found : absent;
}

/// YaRN's numbers; factor 1 where positions are not stretched so.
void take_positions(const Value& theirs, Value& options) {
  const Value* rope = rope_table(theirs);
  options["rope_theta"] = found_or(rope, "rope_theta", found_or(&theirs, "rope_theta", 10000.0));
  options["yarn"] = "always";
  options["rope_factor"] = 1.0;
  if (found_or(rope, "rope_type", found_or(rope, "type", {})) != Value("yarn")) return;
  options["rope_factor"] = found_or(rope, "factor", 1.0);
  options["original_seq_len"] = found_or(rope, "original_max_position_embeddings", 4096);
  options["beta_fast"] = found_or(rope, "beta_fast", 32.0);
  options["beta_slow"] = found_or(rope, "beta_slow", 1.0);
  options["mscale"] = found_or(rope, "mscale_all_dim", 0.0);
}

}  // namespace

DeepseekV3::Kind DeepseekV3::kind() const {
  const DeepseekV3Options& o = options_;
  const bool is_v3 = o.score_func == nn::RouterScore::sigmoid;
  const nn::GroupScore theirs = is_v3 ? nn::GroupScore::best_two : nn::GroupScore::best;
  const bool is_known = o.latent_norm_eps == kTheirLatentNormEps && o.num_shared_experts > 0 &&
                        (o.num_expert_groups == 0 || o.group_score == theirs) &&
                        (is_v3 || !o.route_norm);
  return !is_known ? Kind::other : is_v3 ? Kind::v3 : Kind::v2;
}

/// In DeepSeek's words, whose code has all of them.
const char* DeepseekV3::topk_method() const {
  if (options_.num_expert_groups == 0)
    return options_.score_func == nn::RouterScore::sigmoid ? "noaux_tc" : "greedy";
  return options_.group_score == nn::GroupScore::best ? "group_limited_greedy" : "noaux_tc";
}

Value DeepseekV3::hf_config() const {
  const DeepseekV3Options& o = options_;
  Value rope;
  if (has_yarn())
    rope = Value::map({{"type", "yarn"},
                       {"factor", o.rope_factor},
                       {"original_max_position_embeddings", o.original_seq_len},
                       {"beta_fast", o.beta_fast},
                       {"beta_slow", o.beta_slow},
                       {"mscale", o.mscale},
                       {"mscale_all_dim", o.mscale}});
  // without it transformers makes one of the factor
  if (has_yarn() && o.mscale == 0) rope["attention_factor"] = 1.0;
  const bool has_groups = o.num_expert_groups > 0;
  Value config = Value::map(
      {{"hidden_size", o.dim},
       {"intermediate_size", o.inter_dim},
       {"moe_intermediate_size", o.moe_inter_dim},
       {"num_hidden_layers", o.n_layers},
       {"first_k_dense_replace", o.n_dense_layers},
       {"moe_layer_freq", 1},
       {"num_attention_heads", o.n_heads},
       {"num_key_value_heads", o.n_heads},
       {"q_lora_rank", o.q_lora_rank > 0 ? Value(o.q_lora_rank) : Value()},
       {"kv_lora_rank", o.kv_lora_rank},
       {"qk_nope_head_dim", o.qk_nope_head_dim},
       {"qk_rope_head_dim", o.qk_rope_head_dim},
       {"v_head_dim", o.v_head_dim},
       {"vocab_size", o.vocab_size},
       {"n_routed_experts", o.num_experts},
       {"n_shared_experts", o.num_shared_experts},
       {"num_experts_per_tok", o.top_k},
       {"scoring_func", o.score_func == nn::RouterScore::sigmoid ? "sigmoid" : "softmax"},
       {"topk_method", topk_method()},
       {"n_group", has_groups ? o.num_expert_groups : 1},
       {"topk_group", has_groups ? o.num_limited_groups : 1},
       {"norm_topk_prob", o.route_norm},
       {"routed_scaling_factor", o.route_scale},
       {"max_position_embeddings", std::max(context_.seq_len, o.max_position_embeddings)},
       {"rope_theta", o.rope_theta},
       {"rope_scaling", std::move(rope)},
       {"rms_norm_eps", o.norm_eps},
       {"hidden_act", "silu"},
       {"attention_bias", false},
       {"attention_dropout", 0.0},
       {"tie_word_embeddings", false},
       {"initializer_range", 0.02},
       {"use_cache", true}});
  switch (kind()) {
    case Kind::v2:
      config["architectures"] = Value::list({"DeepseekV2ForCausalLM"});
      config["model_type"] = kV2;
      break;
    case Kind::v3:
      config["architectures"] = Value::list({"DeepseekV3ForCausalLM"});
      config["model_type"] = kV3;
      config["num_nextn_predict_layers"] = 0;
      break;
    case Kind::other:
      config["model_type"] = kOther;
      config["latent_norm_eps"] = o.latent_norm_eps;
      break;
  }
  return config;
}

std::optional<Value> DeepseekV3::options_for(const Value& theirs) const {
  const Value type = found_or(&theirs, "model_type", {});
  const bool is_v2 = type == Value(kV2);
  if (!is_v2 && type != Value(kV3) && type != Value(kOther)) return std::nullopt;
  const Value config = in_one_way(theirs);
  Value options = Value::map();
  for (const Size& size : sizes(is_v2))
    if (Value found = found_or(&config, size.theirs, size.absent); !found.is_null())
      options[size.ours] = std::move(found);
  options["group_score"] =
      config.at("topk_method") == Value("group_limited_greedy") ? "best" : "best_two";
  // the experts' biases choose where no step moves them, too
  if (!is_v2) options["load_balance_coeff"] = kBalanceRate;
  take_positions(theirs, options);
  return options;
}

std::vector<std::string> DeepseekV3::config_differences(const Value& theirs) const {
  return hf_config_differences(config_members(is_v2_config(theirs)), in_one_way(hf_config()),
                               in_one_way(theirs));
}

}  // namespace titan::deepseek_v3
