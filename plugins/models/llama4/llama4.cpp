// Builds the network of a Llama 4.
#include <titan/error.h>

#include "options.h"
#include "query_key.h"

namespace titan::llama4 {
namespace {

/// Applies the options that differ between layers.
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

int64_t rounded_up(int64_t width, int64_t multiple_of) {
  return (width + multiple_of - 1) / multiple_of * multiple_of;
}

/// Hidden widths of a feed-forward and of an expert.
struct Widths {
  explicit Widths(const Llama4Options& o) {
    int64_t width = 2 * (4 * o.dim) / 3;
    if (o.ffn_dim_multiplier)
      width = static_cast<int64_t>(*o.ffn_dim_multiplier * static_cast<double>(width));
    dense = o.hidden_dim.value_or(rounded_up(width, o.multiple_of));
    const int64_t shared_by = o.auto_scale_hidden_dim ? o.top_k + o.num_shared_experts : 1;
    expert = o.moe_hidden_dim.value_or(rounded_up(width / shared_by, o.multiple_of));
    TITAN_CHECK(dense > 0 && expert > 0, config, "the widths that follow from model.dim = ", o.dim,
                " are zero; set model.hidden_dim and model.moe_hidden_dim");
  }
  int64_t dense, expert;
};

}  // namespace

models::Transformer network_of(const Llama4Options& o, const ModelContext& context) {
  models::Transformer network = models::shared_network(o, context);
  models::check_experts(o.num_experts, o.top_k);
  TITAN_CHECK(!o.every_n_layers_nope || o.nope_layer_offset < *o.every_n_layers_nope, config,
              "model.nope_layer_offset = ", o.nope_layer_offset,
              " is not below model.every_n_layers_nope = ", o.every_n_layers_nope.value_or(0));
  const Widths widths(o);
  nn::RouterOptions router = {
      .num_experts = o.num_experts, .top_k = o.top_k, .score = nn::RouterScore::sigmoid};
  models::set_balance(o, router);
  network.ffn_dim = widths.dense;
  network.mixture = models::Mixture{.router = router,
                                    .hidden_dim = widths.expert,
                                    .num_shared_experts = o.num_shared_experts,
                                    .weighs_inputs = true};
  network.has_mixture = [o](int64_t layer) { return o.has_experts(layer); };
  network.rope = models::scaled_rope(o.rope_theta, o.rope_scaling);
  network.adapt = [o](int64_t layer, models::BlockOptions& block) { adapt(o, layer, block); };
  return network;
}

}  // namespace titan::llama4
