#include "option_schema.h"

#include "options.h"

namespace titan::llama {

void declare_options(ComponentBuilder<Llama>& builder) {
  using O = LlamaOptions;
  auto shared = models::shared_options<O>(builder);
  shared.sizes().vocab_size();
  builder
      .option("multiple_of", &O::multiple_of,
              "The feed-forward width is rounded up to a multiple of this")
      .at_least(1)
      .option("ffn_dim_multiplier", &O::ffn_dim_multiplier,
              "Factor on the feed-forward width before rounding")
      .greater_than(0);
  shared.norm_eps()
      .rope_theta()
      .rope_scaling("Scaling of long rotary wavelengths as in Llama 3.1")
      .max_position_embeddings()
      .depth_init()
      .enable_weight_tying()
      .attn_type();
}

}  // namespace titan::llama
