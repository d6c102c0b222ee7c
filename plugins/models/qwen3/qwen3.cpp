#include "qwen3.h"

#include <titan/error.h>

namespace titan::qwen3 {
namespace {

models::Transformer network_of(const Qwen3Options& o) {
  TITAN_CHECK(o.head_dim % 2 == 0, config, "model.head_dim must be even for rotary positions, got ",
              o.head_dim);
  models::check_heads(o.n_heads, o.n_kv_heads);
  std::optional<models::Mixture> mixture;
  if (o.num_experts > 0) {
    models::check_experts(o.num_experts, o.top_k);
    nn::RouterOptions router = {.num_experts = o.num_experts, .top_k = o.top_k, .normalises = true};
    models::set_balance(o, router);
    mixture = {.router = router, .hidden_dim = o.moe_hidden_dim};
  }
  return {.dim = o.dim,
          .n_layers = o.n_layers,
          .n_heads = o.n_heads,
          .n_kv_heads = o.n_kv_heads,
          .head_dim = o.head_dim,
          .ffn_dim = o.hidden_dim,
          .mixture = mixture,
          .vocab_size = o.vocab_size,
          .norm_eps = o.norm_eps,
          .rope = {.theta = o.rope_theta},
          .normalizes_qk = true,
          .depth_init = o.depth_init,
          .is_tied = o.enable_weight_tying};
}

}  // namespace

Qwen3::Qwen3(const Qwen3Options& options, ModelContext context)
    : options_(options), network_(network_of(options)), context_(context) {}

std::vector<Layer> Qwen3::build() const {
  return models::build_layers(network_);
}

Flops Qwen3::flops_per_token(int64_t seq_len) const {
  return models::flops_per_token(network_, seq_len);
}

}  // namespace titan::qwen3
