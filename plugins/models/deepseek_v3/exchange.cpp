// Names and config.json keys of DeepSeek-V2 and -V3 weights for transformers, DeepSeek and
// torchtitan. Meta has not published such weights.
#include <algorithm>
#include <iterator>
#include <utility>

#include "options.h"

namespace titan::deepseek_v3 {
namespace {

using models::BlockWeight;
using models::HfKey, models::hf_compared, models::hf_fixed, models::hf_written, models::hf_value;

constexpr double kTheirLatentNormEps = 1e-6;
constexpr const char* kV2 = "deepseek_v2";
constexpr const char* kV3 = "deepseek_v3";
/// model_type of networks that transformers lacks, so that it refuses to load them.
constexpr const char* kOther = "titan_deepseek";

/// The rows of all projections are in DeepSeek's order: pairs are adjacent in the rotated part.
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

/// Weight names of DeepSeek-V3's extra layer after the last one, which predicts one token further
/// (MTP): a block, its own norms, embedding and head.
std::vector<std::string> names_of_prediction(models::Transformer network,
                                             const models::WeightNames& weights) {
  const std::string layer = "model.layers." + std::to_string(network.n_layers) + ".";
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    names.push_back(name);
    names.push_back(name + "_scale_inv");
  };
  ++network.n_layers;
  for (const auto& rule : models::name_rules(network, weights, Naming::hugging_face))
    if (rule.theirs.starts_with(layer)) add(rule.theirs);
  for (const char* part :
       {"embed_tokens", "enorm", "hnorm", "eh_proj", "shared_head.norm", "shared_head.head"})
    add(layer + part + ".weight");
  return names;
}

/// All rules only rename, because rows are in DeepSeek's order everywhere.
models::WeightNames weight_names(const DeepseekV3Options& o, const models::Transformer& network) {
  models::WeightNames names = {
      .torchtitan = models::RotaryRows::halves,
      .mixture = {.expert_bias =
                      kind_of(o) == Kind::v2 ? nullptr : "mlp.gate.e_score_correction_bias"},
      .attention = attention_weights(o.q_lora_rank > 0),
      .scales = "_scale_inv",
      .ignored_elsewhere = {"freqs_cis"}};
  if (kind_of(o) == Kind::v3)
    names.also_ignored = [network, names] { return names_of_prediction(network, names); };
  return names;
}

bool is_v2_config(const Value& config) {
  return hf_value(config, "model_type") == Value(kV2);
}

/// Whether weights are stored in the one quantized format that can be read (NameRule::scales).
bool is_blockwise_float8(const Value& quantization) {
  const Value* method = quantization.find("quant_method");
  const Value* blocks = quantization.find("weight_block_size");
  return method && *method == Value("fp8") && blocks && *blocks == Value::list({128, 128});
}

/// Normalizes keys that have several spellings: q_lora_rank 0 for no latent of queries, and no
/// groups if every expert can be chosen.
Value in_one_way(Value config) {
  const bool is_v2 = is_v2_config(config);
  if (const Value* rank = config.find("q_lora_rank"); rank && rank->is_null())
    config["q_lora_rank"] = 0;
  const Value method = hf_value(config, "topk_method");
  if (method.is_null() || (!is_v2 && method == Value("noaux_tc")))
    config["topk_method"] = is_v2 ? "greedy" : "noaux_tc";
  const Value* groups = config.find("n_group");
  const bool has_groups = groups ? groups->is_integer() && groups->as_integer() > 1 : !is_v2;
  if (!has_groups || config.at("topk_method") == Value("greedy"))
    for (const char* name : {"n_group", "topk_group"}) config[name] = 0;
  if (is_blockwise_float8(hf_value(config, "quantization_config")))
    config["quantization_config"] = Value();
  return config;
}

/// The factor on cos and sin that follows from the other numbers of YaRN.
Value attention_factor(const Value& config) {
  const auto number = [&](const char* name) {
    const Value found = hf_value(config, name);
    return found.is_integer() || found.is_number() ? found.as_number() : 0.0;
  };
  if (number("factor") <= 1) return 1.0;
  const double of_queries = number("mscale"), of_all = number("mscale_all_dim");
  const auto amplitude = [&](double mscale) {
    return nn::yarn_amplitude(number("factor"), mscale);
  };
  return of_queries != 0 && of_all != 0 ? amplitude(of_queries) / amplitude(of_all) : amplitude(1);
}

/// Options that follow from several keys, or from none.
void read_others(const Value& config, Value& options) {
  options["group_score"] =
      config.at("topk_method") == Value("group_limited_greedy") ? "best" : "best_two";
  // the bias affects the choice of experts even if no step changes it
  if (!is_v2_config(config)) options["load_balance_coeff"] = kBalanceRate;
  options["yarn"] = "always";
  if (!options.find("rope_factor")) options["rope_factor"] = 1.0;
}

/// The method's name in DeepSeek's code, which has all of them.
const char* topk_method(const DeepseekV3Options& o) {
  if (o.num_expert_groups == 0)
    return o.score_func == nn::RouterScore::sigmoid ? "noaux_tc" : "greedy";
  return o.group_score == nn::GroupScore::best ? "group_limited_greedy" : "noaux_tc";
}

models::HfRope rope_of(const DeepseekV3Options& o) {
  models::HfRope rope = {
      .type = "yarn",
      .keys = {{"factor", "rope_factor", o.rope_factor, 1.0, HfKey::written_only},
               {"original_max_position_embeddings", "original_seq_len", o.original_seq_len, 4096,
                HfKey::written_only},
               {"beta_fast", "beta_fast", o.beta_fast, 32.0, HfKey::written_only},
               {"beta_slow", "beta_slow", o.beta_slow, 1.0, HfKey::written_only},
               hf_written("mscale", o.mscale),
               {"mscale_all_dim", "mscale", o.mscale, 0.0, HfKey::written_only}},
      .type_key = "type"};
  // otherwise transformers computes one from the factor
  if (o.mscale == 0) rope.keys.push_back(hf_written("attention_factor", 1.0));
  return rope;
}

std::vector<HfMember> rope_members() {
  std::vector<HfMember> members = hf_rope_members();
  std::erase_if(members, [](const HfMember& member) {
    return member.name == "mscale";  // its effect is in attention_factor
  });
  for (HfMember& member : members) {
    if (member.name == "mscale_all_dim") member.absent = 0.0;
    if (member.name == "attention_factor") member.derived = attention_factor;
  }
  return members;
}

/// Keys that depend on the kind of network; last in the file.
std::vector<HfKey> keys_of_kind(const DeepseekV3Options& o) {
  const HfKey latents = {"latent_norm_eps", "latent_norm_eps", o.latent_norm_eps,
                         kTheirLatentNormEps};
  HfKey unwritten = latents;
  unwritten.use = HfKey::compared_only;
  switch (kind_of(o)) {
    case Kind::v2:
      return {hf_written("architectures", Value::list({"DeepseekV2ForCausalLM"})),
              hf_written("model_type", kV2), unwritten};
    case Kind::v3:
      return {hf_written("architectures", Value::list({"DeepseekV3ForCausalLM"})),
              hf_written("model_type", kV3), hf_written("num_nextn_predict_layers", 0), unwritten};
    case Kind::other:
      break;
  }
  return {hf_written("model_type", kOther), latents};
}

/// Keys of config.json, with the defaults of DeepseekV2Config and DeepseekV3Config.
std::vector<HfKey> keys_of(const DeepseekV3Options& o, const models::Transformer& network,
                           const Value& theirs) {
  const bool is_v2 = is_v2_config(theirs), has_groups = o.num_expert_groups > 0;
  const auto of = [&](Value v2, Value v3) { return is_v2 ? std::move(v2) : std::move(v3); };
  const Value rope = network.rope.yarn ? rope_of(o).written() : Value();
  return {
      {"hidden_size", "dim", o.dim, of(4096, 7168)},
      {"intermediate_size", "inter_dim", o.inter_dim, of(11008, 18432)},
      {"moe_intermediate_size", "moe_inter_dim", o.moe_inter_dim, of(1407, 2048)},
      {"num_hidden_layers", "n_layers", o.n_layers, of(32, 61)},
      {"first_k_dense_replace", "n_dense_layers", o.n_dense_layers, of(0, 3)},
      hf_fixed("moe_layer_freq", 1),
      {"num_attention_heads", "n_heads", o.n_heads, of(32, 128)},
      {"num_key_value_heads", "", o.n_heads, hf_value(theirs, "num_attention_heads")},
      {"q_lora_rank", "q_lora_rank", o.q_lora_rank > 0 ? Value(o.q_lora_rank) : Value(), 1536},
      {"kv_lora_rank", "kv_lora_rank", o.kv_lora_rank, 512},
      {"qk_nope_head_dim", "qk_nope_head_dim", o.qk_nope_head_dim, 128},
      {"qk_rope_head_dim", "qk_rope_head_dim", o.qk_rope_head_dim, 64},
      {"v_head_dim", "v_head_dim", o.v_head_dim, 128},
      {"vocab_size", "vocab_size", o.vocab_size, of(102400, 129280)},
      {"n_routed_experts", "num_experts", o.num_experts, of(64, 256)},
      {"n_shared_experts", "num_shared_experts", o.num_shared_experts, of(2, 1)},
      {"num_experts_per_tok", "top_k", o.top_k, of({}, 8)},
      {"scoring_func", "score_func",
       o.score_func == nn::RouterScore::sigmoid ? "sigmoid" : "softmax", of("softmax", "sigmoid")},
      {"topk_method", "", topk_method(o)},
      {"n_group", "num_expert_groups", has_groups ? o.num_expert_groups : 1, of(0, 8)},
      {"topk_group", "num_limited_groups", has_groups ? o.num_limited_groups : 1, of(0, 4)},
      {"norm_topk_prob", "route_norm", o.route_norm, of(false, true)},
      {"routed_scaling_factor", "route_scale", o.route_scale, of(1.0, 2.5)},
      {"max_position_embeddings", "max_position_embeddings", network.max_position_embeddings,
       of(2048, 4096), HfKey::written_only},
      {"rope_theta", "rope_theta", o.rope_theta, 10000.0, HfKey::written_only},
      hf_written("rope_scaling", rope),
      {"rms_norm_eps", "norm_eps", o.norm_eps, 1e-6},
      hf_fixed("hidden_act", "silu"),
      hf_fixed("attention_bias", false),
      hf_written("attention_dropout", 0.0),
      hf_fixed("tie_word_embeddings", false),
      hf_written("initializer_range", 0.02),
      hf_written("use_cache", true),
      hf_compared("mlp_bias", false),
      hf_compared("rope_interleave", true),
      hf_compared("truncate", true),
      hf_compared("quantization_config")};
}

}  // namespace

Kind kind_of(const DeepseekV3Options& o) {
  const bool is_v3 = o.score_func == nn::RouterScore::sigmoid;
  const nn::GroupScore theirs = is_v3 ? nn::GroupScore::best_two : nn::GroupScore::best;
  const bool is_known = o.latent_norm_eps == kTheirLatentNormEps && o.num_shared_experts > 0 &&
                        (o.num_expert_groups == 0 || o.group_score == theirs) &&
                        (is_v3 || !o.route_norm);
  return !is_known ? Kind::other : is_v3 ? Kind::v3 : Kind::v2;
}

models::Exchange exchange_of(const DeepseekV3Options& o, const models::Transformer& network,
                             const Value& theirs) {
  std::vector<HfKey> keys = keys_of(o, network, theirs);
  for (HfKey& key : keys_of_kind(o)) keys.push_back(std::move(key));
  return {.weights = weight_names(o, network),
          .config = {.model_types = {kV2, kV3, kOther},
                     .keys = std::move(keys),
                     .rope = rope_of(o),
                     .rope_members = rope_members(),
                     .in_one_way = in_one_way,
                     .also_read = read_others}};
}

}  // namespace titan::deepseek_v3
