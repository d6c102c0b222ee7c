// The network of a DeepSeek-V2 or -V3.

#include <cmath>
#include <memory>
#include <utility>

#include <titan/error.h>

#include "latent_attention.h"
#include "options.h"

namespace titan::deepseek_v3 {
namespace {

models::AttentionCost attention_cost(const DeepseekV3Options& o) {
  const double dim = o.dim, heads = o.n_heads, q_rank = o.q_lora_rank, kv_rank = o.kv_lora_rank;
  const double nope = o.qk_nope_head_dim, rope = o.qk_rope_head_dim, value = o.v_head_dim;
  const double q_width = heads * (nope + rope);
  const double of_queries = q_rank > 0 ? dim * q_rank + q_rank + q_rank * q_width : dim * q_width;
  return {.weights = of_queries + dim * (kv_rank + rope) + kv_rank +
                     kv_rank * heads * (nope + value) + heads * value * dim,
          .pair_width = heads * (nope + rope + value)};
}

nn::RouterOptions router_of(const DeepseekV3Options& o) {
  nn::RouterOptions router = {.num_experts = o.num_experts,
                              .top_k = o.top_k,
                              .score = o.score_func,
                              .normalises = o.route_norm,
                              .scale = o.route_scale,
                              .num_groups = o.num_expert_groups,
                              .limited_groups = o.num_limited_groups,
                              .group_score = o.group_score};
  models::set_balance(o, router);
  // its weights were trained with a bias, which affects the choice even if no step changes it
  router.keeps_bias = kind_of(o) != Kind::v2;
  return router;
}

/// Whether YaRN stretches positions in a run of `seq_len` tokens.
bool has_yarn(const DeepseekV3Options& o, int64_t seq_len) {
  const bool is_asked = o.yarn == Yarn::always || seq_len > o.original_seq_len;
  return is_asked && o.rope_factor > 1;
}

/// Factor on q·k.
double score_scale(const DeepseekV3Options& o, bool is_stretched) {
  const auto width = static_cast<double>(o.qk_nope_head_dim + o.qk_rope_head_dim);
  const double amplitude = is_stretched ? nn::yarn_amplitude(o.rope_factor, o.mscale) : 1.0;
  return amplitude * amplitude / std::sqrt(width);
}

LatentAttentionOptions latent_attention(const DeepseekV3Options& o, double scale) {
  return {.dim = o.dim,
          .num_heads = o.n_heads,
          .q_rank = o.q_lora_rank,
          .kv_rank = o.kv_lora_rank,
          .nope_dim = o.qk_nope_head_dim,
          .rope_dim = o.qk_rope_head_dim,
          .value_dim = o.v_head_dim,
          .norm_eps = o.latent_norm_eps,
          .scale = scale};
}

}  // namespace

models::Transformer network_of(const DeepseekV3Options& o, const ModelContext& context) {
  TITAN_CHECK(o.qk_rope_head_dim % 2 == 0, config,
              "model.qk_rope_head_dim must be even for rotary positions, got ", o.qk_rope_head_dim);
  TITAN_CHECK(o.n_dense_layers <= o.n_layers, config, "model.n_dense_layers = ", o.n_dense_layers,
              " is above model.n_layers = ", o.n_layers);
  models::check_experts(o.num_experts, o.top_k);
  models::Transformer network = models::shared_network(o, context);
  network.n_kv_heads = o.n_heads;
  network.head_dim = o.qk_rope_head_dim;  // the rotated part
  network.ffn_dim = o.inter_dim;
  network.mixture = models::Mixture{.router = router_of(o),
                                    .hidden_dim = o.moe_inter_dim,
                                    .num_shared_experts = o.num_shared_experts};
  network.has_mixture = [first = o.n_dense_layers](int64_t layer) { return layer >= first; };
  network.attention_cost = attention_cost(o);
  const bool is_stretched = has_yarn(o, context.seq_len);
  if (is_stretched)
    network.rope.yarn = nn::YarnOptions{.factor = o.rope_factor,
                                        .original_max_position = o.original_seq_len,
                                        .beta_fast = o.beta_fast,
                                        .beta_slow = o.beta_slow};
  network.adapt = [latent = latent_attention(o, score_scale(o, is_stretched))](
                      int64_t, models::BlockOptions& block) {
    LatentAttentionOptions attention = latent;
    attention.input_init = block.attention.input_init;
    attention.output_init = block.attention.output_init;
    block.make_attention = [attention](std::shared_ptr<nn::Rope> rope) {
      return std::make_unique<LatentAttention>(attention, std::move(rope));
    };
  };
  return network;
}

}  // namespace titan::deepseek_v3
