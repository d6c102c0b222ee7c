#include "deepseek_v3.h"

#include <cmath>
#include <memory>
#include <utility>

#include <titan/error.h>

#include "latent_attention.h"

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
  return router;
}

models::Transformer network_of(const DeepseekV3Options& o) {
  TITAN_CHECK(o.qk_rope_head_dim % 2 == 0, config,
              "model.qk_rope_head_dim must be even for rotary positions, got ", o.qk_rope_head_dim);
  TITAN_CHECK(o.n_dense_layers <= o.n_layers, config, "model.n_dense_layers = ", o.n_dense_layers,
              " is above model.n_layers = ", o.n_layers);
  models::check_experts(o.num_experts, o.top_k);
  return {.dim = o.dim,
          .n_layers = o.n_layers,
          .n_heads = o.n_heads,
          .n_kv_heads = o.n_heads,
          .head_dim = o.qk_rope_head_dim,  // what is rotated
          .ffn_dim = o.inter_dim,
          .mixture = models::Mixture{.router = router_of(o),
                                     .hidden_dim = o.moe_inter_dim,
                                     .num_shared_experts = o.num_shared_experts},
          .has_mixture = [first = o.n_dense_layers](int64_t layer) { return layer >= first; },
          .vocab_size = o.vocab_size,
          .norm_eps = o.norm_eps,
          .rope = {.theta = o.rope_theta},
          .depth_init = o.depth_init,
          .attention_cost = attention_cost(o)};
}

}  // namespace

DeepseekV3::DeepseekV3(const DeepseekV3Options& options, ModelContext context)
    : options_(options), context_(context), network_(network_of(options)) {
  if (has_yarn())
    network_.rope.yarn = nn::YarnOptions{.factor = options.rope_factor,
                                         .original_max_position = options.original_seq_len,
                                         .beta_fast = options.beta_fast,
                                         .beta_slow = options.beta_slow};
  // its weights were trained with a bias, which goes on choosing where no step moves it
  network_.mixture->router.keeps_bias = kind() != Kind::v2;
}

bool DeepseekV3::has_yarn() const {
  const bool is_asked =
      options_.yarn == Yarn::always || context_.seq_len > options_.original_seq_len;
  return is_asked && options_.rope_factor > 1;
}

double DeepseekV3::score_scale() const {
  const auto width = static_cast<double>(options_.qk_nope_head_dim + options_.qk_rope_head_dim);
  const double amplitude =
      has_yarn() ? nn::yarn_amplitude(options_.rope_factor, options_.mscale) : 1.0;
  return amplitude * amplitude / std::sqrt(width);
}

std::vector<Layer> DeepseekV3::build() const {
  const DeepseekV3Options& o = options_;
  models::Transformer network = network_;
  network.adapt = [&o, scale = score_scale()](int64_t, models::BlockOptions& block) {
    const LatentAttentionOptions attention = {.dim = o.dim,
                                              .num_heads = o.n_heads,
                                              .q_rank = o.q_lora_rank,
                                              .kv_rank = o.kv_lora_rank,
                                              .nope_dim = o.qk_nope_head_dim,
                                              .rope_dim = o.qk_rope_head_dim,
                                              .value_dim = o.v_head_dim,
                                              .norm_eps = o.latent_norm_eps,
                                              .scale = scale,
                                              .input_init = block.attention.input_init,
                                              .output_init = block.attention.output_init};
    block.make_attention = [attention](std::shared_ptr<nn::Rope> rope) {
      return std::make_unique<LatentAttention>(attention, std::move(rope));
    };
  };
  return models::build_layers(network);
}

Flops DeepseekV3::flops_per_token(int64_t seq_len) const {
  return models::flops_per_token(network_, seq_len);
}

}  // namespace titan::deepseek_v3
