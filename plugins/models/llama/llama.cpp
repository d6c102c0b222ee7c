#include "llama.h"

#include <algorithm>
#include <cmath>

#include <titan/nn/embedding.h>
#include <titan/nn/head.h>

#include "transformer_block.h"

namespace titan::llama {

using nn::Init;

Llama::Llama(const LlamaOptions& options, ModelContext context)
    : options_(options), dimensions_(options), context_(context) {}

std::vector<Layer> Llama::build() const {
  const LlamaOptions& o = options_;
  const double head_std = 1 / std::sqrt(static_cast<double>(o.dim));
  const Init head_init = Init::truncated_normal(0, head_std, -3 * head_std, 3 * head_std);
  const auto rope = std::make_shared<nn::Rope>(  // one table for all layers
      dimensions_.head_dim,
      nn::RopeOptions{.theta = o.rope_theta,
                      .scaling_factor = o.rope_scaling.scaling_factor,
                      .low_freq_factor = o.rope_scaling.low_freq_factor,
                      .high_freq_factor = o.rope_scaling.high_freq_factor,
                      .original_max_position = o.rope_scaling.original_max_position_embeddings});

  std::vector<Layer> layers;
  // a shared matrix is drawn by the head's rule: it is the head that sets the scale of the logits
  auto embedding = std::make_unique<nn::Embedding>(
      o.vocab_size, o.dim, o.enable_weight_tying ? head_init : Init::normal(0, 1));
  const auto tied_weight = o.enable_weight_tying ? embedding->shared_weight() : nullptr;
  layers.push_back({"tok_embeddings", std::move(embedding), "tok_embeddings"});

  for (int64_t i = 0; i < o.n_layers; ++i) {
    const Init input_init = Init::truncated_normal(0, 0.02);
    const double depth = static_cast<double>(o.depth_init ? i + 1 : o.n_layers);
    const Init output_init = Init::truncated_normal(0, 0.02 / std::sqrt(2 * depth));
    const std::string name = "layers." + std::to_string(i);
    layers.push_back({name,
                      std::make_unique<TransformerBlock>(
                          BlockOptions{.attention = {.dim = o.dim,
                                                     .num_heads = o.n_heads,
                                                     .num_kv_heads = dimensions_.num_kv_heads,
                                                     .head_dim = dimensions_.head_dim,
                                                     .input_init = input_init,
                                                     .output_init = output_init},
                                       .feed_forward = {.dim = o.dim,
                                                        .hidden_dim = dimensions_.ffn_dim,
                                                        .gate_init = input_init,
                                                        .output_init = output_init},
                                       .norm_eps = o.norm_eps},
                          rope),
                      name});
  }

  layers.push_back(
      {"output",
       std::make_unique<nn::OutputHead>(nn::OutputHeadOptions{.dim = o.dim,
                                                              .vocab_size = o.vocab_size,
                                                              .norm_eps = o.norm_eps,
                                                              .init = head_init,
                                                              .tied_weight = tied_weight}),
       ""});
  return layers;
}

Flops Llama::flops_per_token(int64_t seq_len) const {
  const double dim = options_.dim, layers = options_.n_layers, vocab = options_.vocab_size;
  const double heads_width = static_cast<double>(options_.n_heads) * dimensions_.head_dim;
  const double kv_width = static_cast<double>(dimensions_.num_kv_heads) * dimensions_.head_dim;
  const double per_layer =
      2 * dim * heads_width + 2 * dim * kv_width + 3 * dim * dimensions_.ffn_dim + 2 * dim;
  const double matmul_parameters =
      layers * per_layer + dim + vocab * dim;  // without the look-up table
  const double attention = 6 * layers * heads_width * seq_len;
  return {.full_attention = 6 * matmul_parameters + 2 * attention,
          .causal_half = 6 * matmul_parameters + attention};
}

std::vector<HfExchange::NameRule> Llama::name_rules() const {
  std::vector<NameRule> rules = {{"tok_embeddings.weight", "model.embed_tokens.weight"}};
  constexpr const char* kInLayer[][2] = {
      {"attention.wq", "self_attn.q_proj"},    {"attention.wk", "self_attn.k_proj"},
      {"attention.wv", "self_attn.v_proj"},    {"attention.wo", "self_attn.o_proj"},
      {"feed_forward.w1", "mlp.gate_proj"},    {"feed_forward.w3", "mlp.up_proj"},
      {"feed_forward.w2", "mlp.down_proj"},    {"attention_norm", "input_layernorm"},
      {"ffn_norm", "post_attention_layernorm"}};
  for (int64_t i = 0; i < options_.n_layers; ++i)
    for (const auto& [ours, theirs] : kInLayer)
      rules.push_back({"layers." + std::to_string(i) + "." + ours + ".weight",
                       "model.layers." + std::to_string(i) + "." + theirs + ".weight"});
  rules.push_back({"norm.weight", "model.norm.weight"});
  if (!options_.enable_weight_tying) rules.push_back({"output.weight", "lm_head.weight"});
  return rules;
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
       {"intermediate_size", dimensions_.ffn_dim},
       {"num_hidden_layers", o.n_layers},
       {"num_attention_heads", o.n_heads},
       {"num_key_value_heads", dimensions_.num_kv_heads},
       {"head_dim", dimensions_.head_dim},
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

}  // namespace titan::llama
