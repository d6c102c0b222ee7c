#include "options.h"

#include <titan/error.h>

namespace titan::mixtral {

Dimensions::Dimensions(const MixtralOptions& o)
    : num_kv_heads(o.n_kv_heads.value_or(o.n_heads)),
      head_dim(o.head_dim.value_or(o.dim / o.n_heads)) {
  TITAN_CHECK(o.head_dim || o.dim % o.n_heads == 0, config, "model.dim = ", o.dim,
              " is not divisible by model.n_heads = ", o.n_heads,
              "; set model.head_dim to choose the width of a head");
  TITAN_CHECK(head_dim % 2 == 0, config, "model.head_dim must be even for rotary positions, got ",
              head_dim, o.head_dim ? "" : " (= dim / n_heads)");
  TITAN_CHECK(num_kv_heads <= o.n_heads && o.n_heads % num_kv_heads == 0, config,
              "model.n_heads = ", o.n_heads,
              " is not a multiple of model.n_kv_heads = ", num_kv_heads);
  TITAN_CHECK(o.top_k <= o.num_experts, config, "model.top_k = ", o.top_k,
              " is above model.num_experts = ", o.num_experts);
}

}  // namespace titan::mixtral
