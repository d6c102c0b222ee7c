#include "llama4.h"

#include "query_key.h"

namespace titan::llama4 {
namespace {

/// What layer `layer` has of its own.
void adapt(const Llama4Options& o, int64_t layer, models::BlockOptions& block) {
  QueryKeyOptions query_key;
  if (o.has_positions(layer)) {
    block.attention.chunk = o.chunk_size();
    if (o.use_qk_norm) query_key.norm_eps = o.norm_eps;
  } else {
    block.has_positions = false;
    if (o.attn_temperature_tuning)
      query_key.temperature = Temperature{.floor = o.floor_scale, .scale = o.attn_scale};
  }
  block.on_attention = [query_key](nn::Attention& attention) {
    set_query_key(attention, query_key);
  };
}

models::Transformer network_of(const Llama4Options& o) {
  const Dimensions dimensions(o);
  nn::RouterOptions router = {
      .num_experts = o.num_experts, .top_k = o.top_k, .score = nn::RouterScore::sigmoid};
  models::set_balance(o, router);
  return {.dim = o.dim,
          .n_layers = o.n_layers,
          .n_heads = o.n_heads,
          .n_kv_heads = dimensions.num_kv_heads,
          .head_dim = dimensions.head_dim,
          .ffn_dim = dimensions.ffn_dim,
          .mixture = models::Mixture{.router = router,
                                     .hidden_dim = dimensions.moe_hidden_dim,
                                     .num_shared_experts = o.num_shared_experts,
                                     .weighs_inputs = true},
          .has_mixture = [o](int64_t layer) { return o.has_experts(layer); },
          .vocab_size = o.vocab_size,
          .norm_eps = o.norm_eps,
          .rope = models::scaled_rope(o.rope_theta, o.rope_scaling),
          .depth_init = o.depth_init,
          .is_tied = o.enable_weight_tying,
          .adapt = [o](int64_t layer, models::BlockOptions& block) { adapt(o, layer, block); }};
}

}  // namespace

Llama4::Llama4(const Llama4Options& options, ModelContext context)
    : options_(options), network_(network_of(options)), context_(context) {}

std::vector<Layer> Llama4::build() const {
  return models::build_layers(network_);
}

Flops Llama4::flops_per_token(int64_t seq_len) const {
  return models::flops_per_token(network_, seq_len);
}

}  // namespace titan::llama4
