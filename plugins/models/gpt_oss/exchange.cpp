// Names and config.json keys of gpt-oss weights for transformers and torchtitan.
#include <utility>

#include "options.h"

namespace titan::gpt_oss {
namespace {

using NameRule = HfExchange::NameRule;

/// The other format stores gates in even rows or columns, ups in odd ones.
TensorCut interleaved(int64_t dim, int64_t which) {
  return TensorCut::every(dim, 2, which);
}

/// Rules for Hugging Face's names of weights that a layer has in addition to those of every
/// Transformer. Experts are stored either in bf16, transposed, or as MXFP4 blocks, not transposed.
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

/// Rules for torchtitan v0.2.2: gates and ups in one matrix, alternating row by row.
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

/// "sliding_attention" for layers of even index, "full_attention" for the others.
Value layer_types(int64_t n_layers) {
  Value types = Value::list();
  for (int64_t i = 0; i < n_layers; ++i)
    types.as_list().push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
  return types;
}

std::vector<NameRule> torchtitan_rules(int64_t n_layers, bool has_expert_bias) {
  std::vector<NameRule> rules = {{"tok_embeddings.weight", "tok_embeddings.weight"}};
  for (int64_t i = 0; i < n_layers; ++i)
    for (NameRule& rule : torchtitan_layer("layers." + std::to_string(i) + ".", has_expert_bias))
      rules.push_back(std::move(rule));
  rules.push_back({"norm.weight", "norm.weight"});
  rules.push_back({"output.weight", "output.weight"});
  return rules;
}

}  // namespace

/// All formats rotate halves of a head, as Titan does. Keys have the defaults of GptOssConfig.
models::Exchange exchange_of(const GptOssOptions& o, const models::Transformer& network,
                             const Value&) {
  using models::HfKey, models::hf_fixed, models::hf_written;
  const models::HfRope rope = {
      .type = "yarn",
      .keys = {{"factor", "rope_factor", o.rope_factor, {}, HfKey::written_only},
               {"original_max_position_embeddings",
                "original_seq_len",
                o.original_seq_len,
                {},
                HfKey::written_only},
               {"beta_fast", "beta_fast", o.beta_fast, {}, HfKey::written_only},
               {"beta_slow", "beta_slow", o.beta_slow, {}, HfKey::written_only},
               hf_fixed("truncate", false)}};
  return {
      .weights = {.mixture_rules = hugging_face_layer,
                  .torchtitan_rules = [n_layers = o.n_layers,
                                       biased = o.load_balance_coeff >
                                                0] { return torchtitan_rules(n_layers, biased); },
                  .ignored_elsewhere = {"rope_cache"}},
      .config = {.model_types = {"gpt_oss"},
                 .keys = {hf_written("architectures", Value::list({"GptOssForCausalLM"})),
                          hf_written("model_type", "gpt_oss"),
                          {"hidden_size", "dim", o.dim, 2880},
                          {"intermediate_size", "moe_hidden_dim", o.moe_hidden_dim, 2880},
                          {"num_hidden_layers", "n_layers", o.n_layers, 36},
                          {"num_attention_heads", "n_heads", o.n_heads, 64},
                          {"num_key_value_heads", "n_kv_heads", o.n_kv_heads, 8},
                          {"head_dim", "head_dim", o.head_dim, 64},
                          {"vocab_size", "vocab_size", o.vocab_size, 201088},
                          {"num_local_experts", "num_experts", o.num_experts, 128},
                          {"num_experts_per_tok", "top_k", o.top_k, 4},
                          {"swiglu_limit", "swiglu_limit", o.swiglu_limit, 7.0},
                          {"sliding_window", "sliding_window_size", o.sliding_window_size, 128},
                          hf_fixed("layer_types", layer_types(o.n_layers)),
                          {"max_position_embeddings", "max_position_embeddings",
                           network.max_position_embeddings, 131072, HfKey::written_only},
                          hf_written("initial_context_length", o.original_seq_len),
                          {"rope_theta", "rope_theta", o.rope_theta, 150000.0, HfKey::written_only},
                          hf_written("rope_scaling", rope.written()),
                          {"rms_norm_eps", "norm_eps", o.norm_eps, 1e-5},
                          hf_fixed("hidden_act", "silu"),
                          hf_fixed("attention_bias", true),
                          hf_written("attention_dropout", 0.0),
                          hf_fixed("tie_word_embeddings", false),
                          hf_written("output_router_logits", false),
                          hf_written("router_aux_loss_coef", 0.9),
                          hf_written("initializer_range", 0.02),
                          hf_written("use_cache", true)},
                 .rope = rope}};
}

}  // namespace titan::gpt_oss
