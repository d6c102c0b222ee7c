#include "option_schema.h"

#include "options.h"

namespace titan::llama {

void declare_options(ComponentBuilder<Llama>& builder) {
  using O = LlamaOptions;
  builder.option("dim", &O::dim, "Width of the residual stream")
      .at_least(1)
      .option("n_layers", &O::n_layers, "Number of transformer blocks")
      .at_least(1)
      .option("n_heads", &O::n_heads, "Number of query heads")
      .at_least(1)
      .option("n_kv_heads", &O::n_kv_heads, "Number of key and value heads; unset = n_heads")
      .at_least(1)
      .option("head_dim", &O::head_dim, "Width of one head; unset = dim / n_heads")
      .at_least(2)
      .option("vocab_size", &O::vocab_size, "Rows of the embedding and of the head")
      .at_least(1)
      .option("multiple_of", &O::multiple_of,
              "The feed-forward width is rounded up to a multiple of this")
      .at_least(1)
      .option("ffn_dim_multiplier", &O::ffn_dim_multiplier,
              "Factor on the feed-forward width before rounding")
      .greater_than(0)
      .option("norm_eps", &O::norm_eps, "Epsilon of the normalisations")
      .greater_than(0)
      .option("rope_theta", &O::rope_theta, "Base of the rotary wavelengths")
      .greater_than(1)
      .table("rope_scaling", &O::rope_scaling, "Scaling of long rotary wavelengths as in Llama 3.1",
             [](SchemaBuilder& table) {
               using R = RopeScaling;
               table
                   .option("scaling_factor", &R::scaling_factor,
                           "Factor on long wavelengths; 1 = none")
                   .at_least(1)
                   .option("low_freq_factor", &R::low_freq_factor,
                           "Wavelengths above original_max_position_embeddings / this are scaled")
                   .greater_than(0)
                   .option(
                       "high_freq_factor", &R::high_freq_factor,
                       "Wavelengths below original_max_position_embeddings / this are left alone")
                   .greater_than(0)
                   .option("original_max_position_embeddings", &R::original_max_position_embeddings,
                           "Sequence length that the unscaled wavelengths were made for")
                   .at_least(1);
             })
      .option("max_position_embeddings", &O::max_position_embeddings,
              "Longest sequence the weights are meant for, as the exported config.json tells it; "
              "at least training.seq_len")
      .at_least(1)
      .option("depth_init", &O::depth_init,
              "Draw output projections narrower in deeper layers (else by n_layers)")
      .option("enable_weight_tying", &O::enable_weight_tying, "Embedding and head share one matrix")
      .option("attn_type", &O::attn_type,
              "sdpa: causal over the whole row; flex and varlen: within documents",
              {{"sdpa", AttentionType::sdpa},
               {"flex", AttentionType::flex},
               {"varlen", AttentionType::varlen}});
}

}  // namespace titan::llama
