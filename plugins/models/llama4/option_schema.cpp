#include "option_schema.h"

#include "options.h"

namespace titan::llama4 {
namespace {

using O = Llama4Options;

void declare_widths(ComponentBuilder<Llama4>& builder) {
  builder
      .option("multiple_of", &O::multiple_of,
              "Widths that follow from dim are rounded up to a multiple of this")
      .at_least(1)
      .option("ffn_dim_multiplier", &O::ffn_dim_multiplier,
              "Factor on the widths that follow from dim, before rounding")
      .greater_than(0)
      .option("hidden_dim", &O::hidden_dim,
              "Width of a feed-forward; unset = 8/3 dim times ffn_dim_multiplier, rounded up")
      .at_least(1)
      .option("moe_hidden_dim", &O::moe_hidden_dim,
              "Width within one expert; unset = as hidden_dim, divided before rounding by the "
              "experts per token")
      .at_least(1)
      .option("auto_scale_hidden_dim", &O::auto_scale_hidden_dim,
              "Divide a moe_hidden_dim that follows from dim by the experts per token");
}

/// Options by which layers with and without positions differ.
void declare_kinds_of_layers(ComponentBuilder<Llama4>& builder) {
  builder
      .option("every_n_layers_nope", &O::every_n_layers_nope,
              "Every n-th layer has no positions and sees whole rows; unset = none")
      .at_least(1)
      .option("nope_layer_offset", &O::nope_layer_offset,
              "Index of these layers modulo every_n_layers_nope (torchtitan v0.2.2: 0, the "
              "published models: 3)")
      .at_least(0)
      .option(
          "attention_chunk_size", &O::attention_chunk_size,
          "In layers with positions, tokens see their own chunk of this many tokens; 0 = the whole "
          "row; unset = 8192 if some layers have no positions, else 0")
      .at_least(0)
      .option("use_qk_norm", &O::use_qk_norm,
              "Layers with positions divide each head of queries and keys by the root mean square "
              "of its elements, after the rotation")
      .option("attn_temperature_tuning", &O::attn_temperature_tuning,
              "Layers without positions multiply queries by 1 + attn_scale ln(1 + floor((position "
              "+ 1) / floor_scale))")
      .option("floor_scale", &O::floor_scale,
              "Consecutive positions that attn_temperature_tuning scales equally")
      .at_least(1)
      .option("attn_scale", &O::attn_scale, "Growth of the factor of attn_temperature_tuning");
}

}  // namespace

void declare_options(ComponentBuilder<Llama4>& builder) {
  auto shared = models::shared_options<O>(builder);
  shared.sizes().vocab_size();
  declare_widths(builder);
  shared.num_experts("Experts of each layer with experts");
  builder
      .option("num_shared_experts", &O::num_shared_experts,
              "Experts that each token uses in addition to the chosen ones. Hugging Face's format "
              "supports only 1")
      .at_least(0);
  shared.top_k();
  builder
      .option("interleave_moe_layer_step", &O::interleave_moe_layer_step,
              "Every n-th layer has experts instead of its feed-forward")
      .at_least(1);
  shared.norm_eps().rope_theta().rope_scaling("Scaling of long rotary wavelengths");
  declare_kinds_of_layers(builder);
  shared.max_position_embeddings().attn_type().depth_init().enable_weight_tying().balance();
}

}  // namespace titan::llama4
