#include "llama.h"

namespace titan::llama {
namespace {

models::Transformer network_of(const LlamaOptions& o) {
  const Dimensions dimensions(o);
  return {.dim = o.dim,
          .n_layers = o.n_layers,
          .n_heads = o.n_heads,
          .n_kv_heads = dimensions.num_kv_heads,
          .head_dim = dimensions.head_dim,
          .ffn_dim = dimensions.ffn_dim,
          .vocab_size = o.vocab_size,
          .norm_eps = o.norm_eps,
          .rope = models::scaled_rope(o.rope_theta, o.rope_scaling),
          .depth_init = o.depth_init,
          .is_tied = o.enable_weight_tying};
}

}  // namespace

Llama::Llama(const LlamaOptions& options, ModelContext context)
    : options_(options), network_(network_of(options)), context_(context) {}

std::vector<Layer> Llama::build() const {
  return models::build_layers(network_);
}

Flops Llama::flops_per_token(int64_t seq_len) const {
  return models::flops_per_token(network_, seq_len);
}

}  // namespace titan::llama
