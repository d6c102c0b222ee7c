#include "option_schema.h"

#include <string>

#include "options.h"

namespace titan::llama4 {
namespace {

using O = Llama4Options;

void declare_sizes(ComponentBuilder<Llama4>& builder) {
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
              "Widths that follow from dim are rounded up to a multiple of this")
      .at_least(1)
      .option("ffn_dim_multiplier", &O::ffn_dim_multiplier,
              "Factor on the widths that follow from dim, before rounding")
      .greater_than(0)
      .option("hidden_dim", &O::hidden_dim,
              "Width of a feed-forward; unset = 8/3 dim times ffn_dim_multiplier, rounded up")
      .at_least(1);
}

void declare_experts(ComponentBuilder<Llama4>& builder) {
  builder
      .option("moe_hidden_dim", &O::moe_hidden_dim,
              "Width within one expert; unset = as hidden_dim, divided before it is rounded by the "
              "experts that a token meets")
      .at_least(1)
      .option("auto_scale_hidden_dim", &O::auto_scale_hidden_dim,
              "Whether a moe_hidden_dim that follows from dim is divided so")
      .option("num_experts", &O::num_experts, "Experts of each layer that has any")
      .at_least(1)
      .option("num_shared_experts", &O::num_shared_experts,
              "Experts that each token meets beside those that are chosen. Hugging Face's format "
              "has a place for one")
      .at_least(0)
      .option("top_k", &O::top_k, "Experts that a token goes to")
      .at_least(1)
      .option("interleave_moe_layer_step", &O::interleave_moe_layer_step,
              "Every so manieth layer has experts in the place of its feed-forward")
      .at_least(1);
}

void declare_rope(SchemaBuilder& table) {
  using R = RopeScaling;
  table.option("scaling_factor", &R::scaling_factor, "Factor on long wavelengths; 1 = none")
      .at_least(1)
      .option("low_freq_factor", &R::low_freq_factor,
              "Wavelengths above original_max_position_embeddings / this are scaled")
      .greater_than(0)
      .option("high_freq_factor", &R::high_freq_factor,
              "Wavelengths below original_max_position_embeddings / this are left alone")
      .greater_than(0)
      .option("original_max_position_embeddings", &R::original_max_position_embeddings,
              "Sequence length that the unscaled wavelengths were made for")
      .at_least(1);
}

void declare_positions(ComponentBuilder<Llama4>& builder) {
  builder.option("norm_eps", &O::norm_eps, "Epsilon of the normalisations")
      .greater_than(0)
      .option("rope_theta", &O::rope_theta, "Base of the rotary wavelengths")
      .greater_than(1)
      .table("rope_scaling", &O::rope_scaling, "Scaling of long rotary wavelengths", declare_rope)
      .option("every_n_layers_nope", &O::every_n_layers_nope,
              "Every so manieth layer has no positions and sees whole rows; unset = none")
      .at_least(1)
      .option("nope_layer_offset", &O::nope_layer_offset,
              "Which layers these are: index modulo every_n_layers_nope (torchtitan v0.2.2: 0, the "
              "published models: 3)")
      .at_least(0)
      .option(
          "attention_chunk_size", &O::attention_chunk_size,
          "Layers with positions see the tokens of their own piece of so many; 0 = of the whole "
          "row; unset = 8192 where some layers have no positions, else 0")
      .at_least(0)
      .option("use_qk_norm", &O::use_qk_norm,
              "Layers with positions divide each head of queries and keys by the root mean square "
              "of its elements, after the rotation")
      .option("attn_temperature_tuning", &O::attn_temperature_tuning,
              "Layers without positions multiply queries by 1 + attn_scale ln(1 + floor((position "
              "+ 1) / floor_scale))")
      .option("floor_scale", &O::floor_scale, "Positions that attn_temperature_tuning takes alike")
      .at_least(1)
      .option("attn_scale", &O::attn_scale, "How much attn_temperature_tuning grows")
      .option("max_position_embeddings", &O::max_position_embeddings,
              "Longest sequence the weights are meant for, as the exported config.json tells it; "
              "at least training.seq_len")
      .at_least(1)
      .option("attn_type", &O::attn_type,
              "sdpa: causal over the whole row; flex and varlen: within documents",
              {{"sdpa", AttentionType::sdpa},
               {"flex", AttentionType::flex},
               {"varlen", AttentionType::varlen}});
}

}  // namespace

void declare_options(ComponentBuilder<Llama4>& builder) {
  declare_sizes(builder);
  declare_experts(builder);
  declare_positions(builder);
  builder
      .option("depth_init", &O::depth_init,
              "Draw output projections narrower in deeper layers (else by n_layers)")
      .option("enable_weight_tying", &O::enable_weight_tying,
              "Embedding and head share one matrix");
  models::declare_balance<O>(builder);
  builder.check([](const O& own, const JobView& job, RuleReport& report) {
    models::check_balance(own, job, report);
  });
}

}  // namespace titan::llama4
