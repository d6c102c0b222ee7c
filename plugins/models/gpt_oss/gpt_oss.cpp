#include "gpt_oss.h"

#include <titan/error.h>

namespace titan::gpt_oss {
namespace {

/// Weights, biases and sinks.
models::AttentionCost attention_cost(const GptOssOptions& o) {
  const double dim = o.dim, width = static_cast<double>(o.n_heads * o.head_dim),
               kv_width = static_cast<double>(o.n_kv_heads * o.head_dim);
  return {.weights = 2 * dim * (width + kv_width) + width + 2 * kv_width + dim +
                     static_cast<double>(o.n_heads),
          .pair_width = 2 * width};
}

models::Transformer network_of(const GptOssOptions& o) {
  TITAN_CHECK(o.head_dim % 2 == 0, config, "model.head_dim must be even for rotary positions, got ",
              o.head_dim);
  models::check_heads(o.n_heads, o.n_kv_heads);
  models::check_experts(o.num_experts, o.top_k);
  nn::RouterOptions router = {
      .num_experts = o.num_experts, .top_k = o.top_k, .normalises = true, .has_bias = true};
  models::set_balance(o, router);
  models::Transformer network = {
      .dim = o.dim,
      .n_layers = o.n_layers,
      .n_heads = o.n_heads,
      .n_kv_heads = o.n_kv_heads,
      .head_dim = o.head_dim,
      .mixture = models::Mixture{.router = router,
                                 .hidden_dim = o.moe_hidden_dim,
                                 .has_biases = true,
                                 .clamped = ops::ClampedSwigluOptions{.limit = o.swiglu_limit}},
      .vocab_size = o.vocab_size,
      .norm_eps = o.norm_eps,
      .rope = {.theta = o.rope_theta,
               .yarn = nn::YarnOptions{.factor = o.rope_factor,
                                       .original_max_position = o.original_seq_len,
                                       .beta_fast = o.beta_fast,
                                       .beta_slow = o.beta_slow,
                                       .truncates = false,
                                       .amplitude = nn::yarn_amplitude(o.rope_factor)}},
      .depth_init = o.depth_init,
      .attention_cost = attention_cost(o)};
  network.adapt = [window = o.sliding_window_size](int64_t layer, models::BlockOptions& block) {
    const nn::Init init = block.attention.output_init;
    block.attention.input_init = init;
    block.attention.has_bias = true;
    block.attention.sinks_init = init;
    block.attention.window = layer % 2 == 0 ? window : 0;
    block.mixture->gate_init = init;
  };
  return network;
}

}  // namespace

GptOss::GptOss(const GptOssOptions& options, ModelContext context)
    : options_(options), network_(network_of(options)), context_(context) {}

std::vector<Layer> GptOss::build() const {
  return models::build_layers(network_);
}

Flops GptOss::flops_per_token(int64_t seq_len) const {
  return models::flops_per_token(network_, seq_len);
}

}  // namespace titan::gpt_oss
