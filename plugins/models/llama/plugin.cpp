// Registers the models llama3 and llama2 (one network with different defaults) and the flavors of
// torchtitan v0.2.2.
#include <titan/plugin.h>

#include "options.h"

namespace titan::llama {
namespace {

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

}  // namespace
}  // namespace titan::llama

TITAN_PLUGIN(plugin) {
  using titan::Value;
  using titan::llama::Llama;
  using titan::llama::LlamaOptions;

  plugin
      .add<Llama>(
          "llama3",
          "Llama 3, 3.1 and 3.2: grouped-query attention, RMSNorm, SwiGLU, rotary positions.")
      .options(titan::llama::declare_options);
  plugin
      .add<Llama>("llama2", "Llama 2: the same network with the older vocabulary and rotary base.")
      .defaults(
          LlamaOptions{.vocab_size = 32000, .rope_theta = 10000, .max_position_embeddings = 4096})
      .options(titan::llama::declare_options);

  // torchtitan v0.2.2 scales the rotary wavelengths of every flavor, also of the debug model
  const Value scaling_8 = Value::map({{"scaling_factor", 8.0}});
  const Value debug_model = Value::map({{"dim", 256},
                                        {"n_layers", 6},
                                        {"n_heads", 16},
                                        {"vocab_size", 2048},
                                        {"rope_scaling", scaling_8}});
  plugin.add_flavor("llama3", "debugmodel", "6 million parameters, for tests and first runs",
                    debug_model);
  const Value llama_8b = Value::map({{"dim", 4096},
                                     {"n_layers", 32},
                                     {"n_heads", 32},
                                     {"n_kv_heads", 8},
                                     {"ffn_dim_multiplier", 1.3},
                                     {"multiple_of", 1024},
                                     {"rope_scaling", scaling_8}});
  plugin.add_flavor("llama3", "8B", "Llama 3.1 8B", llama_8b);
  // attention within documents, under torchtitan v0.2.2's names
  const auto with_attention = [](Value flavor, const char* type) {
    flavor["attn_type"] = type;
    return flavor;
  };
  plugin.add_flavor("llama3", "debugmodel_flex_attn", "debugmodel, attention within documents",
                    with_attention(debug_model, "flex"));
  plugin.add_flavor("llama3", "debugmodel_varlen_attn", "debugmodel, attention within documents",
                    with_attention(debug_model, "varlen"));
  plugin.add_flavor("llama3", "8B_flex", "8B, attention within documents",
                    with_attention(llama_8b, "flex"));
  plugin.add_flavor("llama3", "8B_varlen", "8B, attention within documents",
                    with_attention(llama_8b, "varlen"));
  plugin.add_flavor("llama3", "70B", "Llama 3.1 70B",
                    {{"dim", 8192},
                     {"n_layers", 80},
                     {"n_heads", 64},
                     {"n_kv_heads", 8},
                     {"ffn_dim_multiplier", 1.3},
                     {"multiple_of", 4096},
                     {"rope_scaling", scaling_8}});
  plugin.add_flavor("llama3", "405B", "Llama 3.1 405B",
                    {{"dim", 16384},
                     {"n_layers", 126},
                     {"n_heads", 128},
                     {"n_kv_heads", 8},
                     {"ffn_dim_multiplier", 1.2},
                     {"multiple_of", 4096},
                     {"rope_scaling", scaling_8}});
  plugin.add_flavor("llama3", "3.0-8B", "Llama 3 8B: 8B without the scaling of rotary wavelengths",
                    {{"dim", 4096},
                     {"n_layers", 32},
                     {"n_heads", 32},
                     {"n_kv_heads", 8},
                     {"ffn_dim_multiplier", 1.3},
                     {"multiple_of", 1024},
                     {"max_position_embeddings", 8192}});
  plugin.add_flavor("llama3", "3.0-70B",
                    "Llama 3 70B: 70B without the scaling of rotary wavelengths",
                    {{"dim", 8192},
                     {"n_layers", 80},
                     {"n_heads", 64},
                     {"n_kv_heads", 8},
                     {"ffn_dim_multiplier", 1.3},
                     {"multiple_of", 4096},
                     {"max_position_embeddings", 8192}});
}
