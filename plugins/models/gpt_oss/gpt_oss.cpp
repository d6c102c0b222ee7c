// Builds the network of a gpt-oss model.
#include "options.h"

namespace titan::gpt_oss {
namespace {

/// Counts weights, biases and sinks.
models::AttentionCost attention_cost(const GptOssOptions& o) {
  const double dim = o.dim, width = static_cast<double>(o.n_heads * o.head_dim),
               kv_width = static_cast<double>(o.n_kv_heads * o.head_dim);
  return {.weights = 2 * dim * (width + kv_width) + width + 2 * kv_width + dim +
                     static_cast<double>(o.n_heads),
          .pair_width = 2 * width};
}

}  // namespace

models::Transformer network_of(const GptOssOptions& o, const ModelContext& context) {
  models::Transformer network = models::shared_network(o, context);
  models::check_experts(o.num_experts, o.top_k);
  nn::RouterOptions router = {
      .num_experts = o.num_experts, .top_k = o.top_k, .normalises = true, .has_bias = true};
  models::set_balance(o, router);
  network.mixture = models::Mixture{.router = router,
                                    .hidden_dim = o.moe_hidden_dim,
                                    .has_biases = true,
                                    .clamped = ops::ClampedSwigluOptions{.limit = o.swiglu_limit}};
  network.rope.yarn = nn::YarnOptions{.factor = o.rope_factor,
                                      .original_max_position = o.original_seq_len,
                                      .beta_fast = o.beta_fast,
                                      .beta_slow = o.beta_slow,
                                      .truncates = false,
                                      .amplitude = nn::yarn_amplitude(o.rope_factor)};
  network.attention_cost = attention_cost(o);
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

}  // namespace titan::gpt_oss
