// Builds the network of a Qwen3; names and config.json keys for transformers and torchtitan. Meta
// has not published such weights.
#include <algorithm>
#include <utility>

#include "options.h"

namespace titan::qwen3 {
namespace {

using models::HfKey, models::hf_compared, models::hf_fixed, models::hf_written;

constexpr const char* kDense = "qwen3";
constexpr const char* kWithExperts = "qwen3_moe";

/// Normalizes keys: transformers 5 has another name for the number of experts, and layer_types is
/// redundant if all layers have full attention.
Value in_one_way(Value config) {
  if (const Value* experts = config.find("num_local_experts");
      experts && !config.find("num_experts"))
    config["num_experts"] = Value(*experts);
  const Value* types = config.find("layer_types");
  if (types && types->is_list() &&
      std::all_of(types->as_list().begin(), types->as_list().end(),
                  [](const Value& type) { return type == Value("full_attention"); }))
    config["layer_types"] = Value();
  return config;
}

/// The default of transformers for key heads: that of the queries if the key is null.
Value absent_key_heads(const Value& theirs, int64_t where_missing) {
  return theirs.find("num_key_value_heads")
             ? models::hf_value(theirs, "num_attention_heads", where_missing)
             : Value(where_missing);
}

/// The default of head_dim: a fixed number without experts, else hidden_size / num_attention_heads.
Value absent_head_dim(const Value& theirs, bool with_experts) {
  if (!with_experts) return 128;
  Value sizes = Value::map({{"width", models::hf_value(theirs, "hidden_size", 2048)},
                            {"heads", models::hf_value(theirs, "num_attention_heads", 32)}});
  return models::hf_quotient(sizes, "width", "heads");
}

/// Keys of a model with experts in every layer and routing weights that sum to one.
std::vector<HfKey> keys_of_experts(const Qwen3Options& o) {
  return {{"num_experts", "num_experts", o.num_experts, 128},
          {"num_experts_per_tok", "top_k", o.top_k, 8},
          {"moe_intermediate_size", "moe_hidden_dim", o.moe_hidden_dim, 768},
          hf_fixed("decoder_sparse_step", 1),
          hf_fixed("mlp_only_layers", Value::list({})),
          {"norm_topk_prob", "", true, false},
          hf_written("output_router_logits", false),
          hf_written("router_aux_loss_coef", 0.001)};
}

}  // namespace

models::Transformer network_of(const Qwen3Options& o, const ModelContext& context) {
  models::Transformer network = models::shared_network(o, context);
  network.ffn_dim = o.hidden_dim;
  network.qk_norm = models::QkNorm::of_heads;
  if (o.num_experts == 0) return network;
  models::check_experts(o.num_experts, o.top_k);
  nn::RouterOptions router = {.num_experts = o.num_experts, .top_k = o.top_k, .normalises = true};
  models::set_balance(o, router);
  network.mixture = models::Mixture{.router = router, .hidden_dim = o.moe_hidden_dim};
  return network;
}

/// All formats rotate halves of a head, as Titan does, so the rules only rename. Keys have the
/// defaults of Qwen3Config and Qwen3MoeConfig.
models::Exchange exchange_of(const Qwen3Options& o, const models::Transformer& network,
                             const Value& theirs) {
  const bool is_moe = network.mixture.has_value();
  const Value type = models::hf_value(theirs, "model_type");
  const bool moe = type == Value(kWithExperts) || (is_moe && type != Value(kDense));
  const auto of = [&](Value dense, Value with) { return moe ? std::move(with) : std::move(dense); };
  std::vector<HfKey> keys = {
      hf_written("architectures",
                 Value::list({is_moe ? "Qwen3MoeForCausalLM" : "Qwen3ForCausalLM"})),
      hf_written("model_type", is_moe ? kWithExperts : kDense),
      {"hidden_size", "dim", o.dim, of(4096, 2048)},
      {"intermediate_size", "hidden_dim", o.hidden_dim, of(22016, 6144)},
      {"num_hidden_layers", "n_layers", o.n_layers, of(32, 24)},
      {"num_attention_heads", "n_heads", o.n_heads, 32},
      {"num_key_value_heads", "n_kv_heads", o.n_kv_heads, absent_key_heads(theirs, moe ? 4 : 32)},
      {"head_dim", "head_dim", o.head_dim, absent_head_dim(theirs, moe)},
      {"vocab_size", "vocab_size", o.vocab_size, 151936},
      {"max_position_embeddings", "max_position_embeddings", network.max_position_embeddings, 32768,
       HfKey::written_only},
      {"rope_theta", "rope_theta", o.rope_theta, 10000.0, HfKey::written_only},
      hf_written("rope_scaling", {}),
      {"tie_word_embeddings", "enable_weight_tying", o.enable_weight_tying, false},
      {"rms_norm_eps", "norm_eps", o.norm_eps, 1e-6},
      hf_fixed("hidden_act", "silu"),
      hf_fixed("attention_bias", false),
      hf_written("attention_dropout", 0.0),
      hf_fixed("use_sliding_window", false),
      hf_written("sliding_window", {}),
      hf_written("max_window_layers", o.n_layers),
      hf_written("initializer_range", 0.02),
      hf_written("use_cache", true),
      hf_compared("layer_types"),
      hf_compared("quantization_config")};
  if (moe || is_moe)
    for (HfKey& key : keys_of_experts(o)) {
      if (!is_moe) key.use = HfKey::written_only;  // model_type already differs
      keys.push_back(std::move(key));
    }
  return {
      .weights = {.torchtitan = models::RotaryRows::halves, .ignored_elsewhere = {"rope_cache"}},
      .config = {.model_types = {kDense, kWithExperts},
                 .keys = std::move(keys),
                 .in_one_way = in_one_way}};
}

}  // namespace titan::qwen3
