#include "mixtral.h"

#include <titan/error.h>

namespace titan::mixtral {
namespace {

models::Transformer network_of(const MixtralOptions& o) {
  nn::RouterOptions router = {.num_experts = o.num_experts, .top_k = o.top_k, .normalises = true};
  models::set_balance(o, router);
  const int64_t n_kv_heads = o.n_kv_heads.value_or(o.n_heads);
  const int64_t head_dim = o.head_dim.value_or(o.dim / o.n_heads);
  TITAN_CHECK(o.head_dim || o.dim % o.n_heads == 0, config, "model.dim = ", o.dim,
              " is not divisible by model.n_heads = ", o.n_heads,
              "; set model.head_dim to choose the width of a head");
  TITAN_CHECK(head_dim % 2 == 0, config, "model.head_dim must be even for rotary positions, got ",
              head_dim, o.head_dim ? "" : " (= dim / n_heads)");
  models::check_heads(o.n_heads, n_kv_heads);
  models::check_experts(o.num_experts, o.top_k);
  return {.dim = o.dim,
          .n_layers = o.n_layers,
          .n_heads = o.n_heads,
          .n_kv_heads = n_kv_heads,
          .head_dim = head_dim,
          .mixture = models::Mixture{.router = router, .hidden_dim = o.hidden_dim},
          .vocab_size = o.vocab_size,
          .norm_eps = o.norm_eps,
          .rope = {.theta = o.rope_theta},
          .depth_init = o.depth_init,
          .is_tied = o.enable_weight_tying};
}

}  // namespace

Mixtral::Mixtral(const MixtralOptions& options, ModelContext context)
    : options_(options), network_(network_of(options)), context_(context) {}

std::vector<Layer> Mixtral::build() const {
  return models::build_layers(network_);
}

Flops Mixtral::flops_per_token(int64_t seq_len) const {
  return models::flops_per_token(network_, seq_len);
}

}  // namespace titan::mixtral
