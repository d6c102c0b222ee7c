// Names and config.json keys of Llama 4 weights for transformers and torchtitan; Meta's are
// unknown.
#include <utility>

#include "options.h"
#include "text_config.h"

namespace titan::llama4 {
namespace {

using NameRule = HfExchange::NameRule;
using models::HfKey, models::hf_written;

/// Rules for the router and the experts of a layer. Hugging Face stores the matrices of all experts
/// in two tensors, (experts, in, out), gates before ups.
std::vector<NameRule> mixture_rules(int64_t expert_width, const std::string& ours,
                                    const std::string& theirs) {
  const std::string experts = ours + "moe.experts.",
                    their_experts = theirs + "feed_forward.experts.";
  const std::vector<int64_t> transposed = {0, 2, 1};
  std::vector<NameRule> rules = {
      {ours + "moe.router.gate.weight", theirs + "feed_forward.router.weight"},
      {.ours = experts + "w1",
       .theirs = their_experts + "gate_up_proj",
       .of_theirs = {TensorCut::range(2, 0, expert_width)},
       .order = transposed},
      {.ours = experts + "w3",
       .theirs = their_experts + "gate_up_proj",
       .of_theirs = {TensorCut::range(2, expert_width, expert_width)},
       .order = transposed},
      {.ours = experts + "w2", .theirs = their_experts + "down_proj", .order = transposed}};
  for (const auto& [own, part] :
       {std::pair("w1", "gate_proj"), {"w3", "up_proj"}, {"w2", "down_proj"}})
    rules.push_back({ours + "moe.shared_experts." + own + ".weight",
                     theirs + "feed_forward.shared_expert." + part + ".weight"});
  return rules;
}

/// Hugging Face names are those of Llama4ForCausalLM, and for reading also those of the same
/// weights in Llama4ForConditionalGeneration. No Hugging Face names if num_shared_experts is not 1,
/// the only number that transformers has. Weights of the vision model are ignored.
models::WeightNames weight_names(const Llama4Options& o, int64_t expert_width) {
  using Weight = models::BlockWeight;
  return {.torchtitan = models::RotaryRows::pairs,
          .has_hugging_face = o.num_shared_experts == 1,
          .feed_forward = {Weight{"feed_forward.w1", "feed_forward.gate_proj"},
                           Weight{"feed_forward.w3", "feed_forward.up_proj"},
                           Weight{"feed_forward.w2", "feed_forward.down_proj"}},
          .rows = models::RotaryRows::pairs,
          .prefixes = {"", "language_model."},
          .mixture_rules =
              [=](const std::string& ours, const std::string& theirs) {
                return mixture_rules(expert_width, ours, theirs);
              },
          .ignored = {"rotary_emb.inv_freq", "vision_model.", "multi_modal_projector."},
          .ignored_elsewhere = {"freqs_cis"}};
}

/// Keys of config.json, with the defaults of Llama4TextConfig.
std::vector<HfKey> keys_of(const Llama4Options& o, const models::Transformer& network) {
  const int64_t longest = network.max_position_embeddings;
  return {
      hf_written("architectures", Value::list({"Llama4ForCausalLM"})),
      hf_written("model_type", kTextModel),
      {"hidden_size", "dim", o.dim, 5120},
      {"intermediate_size", "moe_hidden_dim", network.mixture->hidden_dim, 8192},
      {"intermediate_size_mlp", "hidden_dim", network.ffn_dim, 16384},
      {"num_hidden_layers", "n_layers", o.n_layers, 48},
      {"num_attention_heads", "n_heads", o.n_heads, 40},
      {"num_key_value_heads", "n_kv_heads", network.n_kv_heads, 8},
      {"head_dim", "head_dim", network.head_dim, 128},
      {"vocab_size", "vocab_size", o.vocab_size, 202048},
      {"num_local_experts", "num_experts", o.num_experts, 16},
      {"num_experts_per_tok", "top_k", o.top_k, 1},
      hf_written("interleave_moe_layer_step", o.interleave_moe_layer_step),
      {"moe_layers", "", moe_layers(o)},
      {"max_position_embeddings", "max_position_embeddings", longest, 131072, HfKey::written_only},
      {"rope_theta", "rope_theta", o.rope_theta, 500000.0, HfKey::written_only},
      hf_written("rope_scaling", models::hf_rope_scaling(o.rope_scaling)),
      {"no_rope_layers", "", no_rope_layers(o)},
      {"layer_types", "", layer_types(o)},
      // transformers requires a value even if no layer has chunks
      {"attention_chunk_size", "", o.chunk_size() > 0 ? o.chunk_size() : longest},
      {"use_qk_norm", "use_qk_norm", o.use_qk_norm, true},
      {"attn_temperature_tuning", "attn_temperature_tuning", o.attn_temperature_tuning, true},
      {"floor_scale", "floor_scale", o.floor_scale, 8192},
      {"attn_scale", "attn_scale", o.attn_scale, 0.1},
      {"tie_word_embeddings", "enable_weight_tying", o.enable_weight_tying, false},
      {"rms_norm_eps", "norm_eps", o.norm_eps, 1e-5},
      models::hf_fixed("hidden_act", "silu"),
      models::hf_fixed("attention_bias", false),
      hf_written("attention_dropout", 0.0),
      hf_written("output_router_logits", false),
      hf_written("router_aux_loss_coef", 0.001),
      hf_written("router_jitter_noise", 0.0),
      hf_written("initializer_range", 0.02),
      hf_written("use_cache", true),
      models::hf_compared("quantization_config")};
}

}  // namespace

models::Exchange exchange_of(const Llama4Options& o, const models::Transformer& network,
                             const Value&) {
  std::vector<HfKey> keys = keys_of(o, network);
  const auto in_one_way = [keys](const Value& config) {
    const std::optional<Value> text = text_config_of(config);
    return text ? completed(*text, keys) : config;
  };
  for (HfKey& key : keys)  // a completed configuration has no absent keys
    if (!key.option.empty()) key.absent = {};
  return {.weights = weight_names(o, network.mixture->hidden_dim),
          .config = {.model_types = {kTextModel, kModelWithImages},
                     .keys = std::move(keys),
                     .rope = models::hf_rope(o.rope_scaling),
                     .in_one_way = in_one_way,
                     .also_read = read_layers}};
}

}  // namespace titan::llama4
