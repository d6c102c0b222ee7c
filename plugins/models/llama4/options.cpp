#include "options.h"

#include <titan/error.h>

#include "../common/transformer.h"

namespace titan::llama4 {
namespace {

int64_t rounded_up(int64_t width, int64_t multiple_of) {
  return (width + multiple_of - 1) / multiple_of * multiple_of;
}

}  // namespace

Dimensions::Dimensions(const Llama4Options& o)
    : num_kv_heads(o.n_kv_heads.value_or(o.n_heads)),
      head_dim(o.head_dim.value_or(o.dim / o.n_heads)) {
  TITAN_CHECK(o.head_dim || o.dim % o.n_heads == 0, config, "model.dim = ", o.dim,
              " is not divisible by model.n_heads = ", o.n_heads,
              "; set model.head_dim to choose the width of a head");
  TITAN_CHECK(head_dim % 2 == 0, config, "model.head_dim must be even for rotary positions, got ",
              head_dim, o.head_dim ? "" : " (= dim / n_heads)");
  models::check_heads(o.n_heads, num_kv_heads);
  models::check_experts(o.num_experts, o.top_k);
  TITAN_CHECK(!o.every_n_layers_nope || o.nope_layer_offset < *o.every_n_layers_nope, config,
              "model.nope_layer_offset = ", o.nope_layer_offset,
              " is not below model.every_n_layers_nope = ", o.every_n_layers_nope.value_or(0));

  int64_t width = 2 * (4 * o.dim) / 3;
  if (o.ffn_dim_multiplier)
    width = static_cast<int64_t>(*o.ffn_dim_multiplier * static_cast<double>(width));
  ffn_dim = o.hidden_dim.value_or(rounded_up(width, o.multiple_of));
  const int64_t shared_by = o.auto_scale_hidden_dim ? o.top_k + o.num_shared_experts : 1;
  moe_hidden_dim = o.moe_hidden_dim.value_or(rounded_up(width / shared_by, o.multiple_of));
  TITAN_CHECK(ffn_dim > 0 && moe_hidden_dim > 0, config,
              "the widths that follow from model.dim = ", o.dim,
              " come to nothing; set model.hidden_dim and model.moe_hidden_dim");
}

}  // namespace titan::llama4
