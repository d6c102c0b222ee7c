#include "options.h"

#include <titan/error.h>

#include "../common/transformer.h"

namespace titan::llama {

Dimensions::Dimensions(const LlamaOptions& o)
    : num_kv_heads(o.n_kv_heads.value_or(o.n_heads)),
      head_dim(o.head_dim.value_or(o.dim / o.n_heads)) {
  TITAN_CHECK(o.head_dim || o.dim % o.n_heads == 0, config, "model.dim = ", o.dim,
              " is not divisible by model.n_heads = ", o.n_heads,
              "; set model.head_dim to choose the width of a head");
  TITAN_CHECK(head_dim % 2 == 0, config, "model.head_dim must be even for rotary positions, got ",
              head_dim, o.head_dim ? "" : " (= dim / n_heads)");
  models::check_heads(o.n_heads, num_kv_heads);
  ffn_dim = 2 * (4 * o.dim) / 3;
  if (o.ffn_dim_multiplier)
    ffn_dim = static_cast<int64_t>(*o.ffn_dim_multiplier * static_cast<double>(ffn_dim));
  ffn_dim = (ffn_dim + o.multiple_of - 1) / o.multiple_of * o.multiple_of;
}

}  // namespace titan::llama
