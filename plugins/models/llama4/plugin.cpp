// Registers the model llama4, the flavors of torchtitan v0.2.2, and the published models.
#include <titan/plugin.h>

#include "option_schema.h"

namespace {

using titan::Value;

Value changed(Value flavor, std::initializer_list<Value::Member> members) {
  for (const auto& [name, value] : members) flavor[name] = value;
  return flavor;
}

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin
      .add<titan::llama4::Llama4>(
          "llama4", "Llama 4: experts, layers without positions, attention in chunks.")
      .options(titan::llama4::declare_options);

  // low_freq_factor and high_freq_factor are equal
  const Value scaling_16 = Value::map({{"scaling_factor", 16.0}});
  const Value published = Value::map({{"dim", 5120},
                                      {"n_layers", 48},
                                      {"n_heads", 40},
                                      {"n_kv_heads", 8},
                                      {"ffn_dim_multiplier", 1.2},
                                      {"multiple_of", 2048}});
  const Value scout = changed(published, {{"num_experts", 16},
                                          {"interleave_moe_layer_step", 1},
                                          {"rope_scaling", scaling_16},
                                          {"max_position_embeddings", 10485760}});
  const Value maverick = changed(published, {{"num_experts", 128}});

  // torchtitan v0.2.2's: all layers have positions, a bias balances expert load
  const Value bias = 1e-3;
  const Value debugmodel = Value::map({{"dim", 256},
                                       {"n_layers", 6},
                                       {"n_heads", 16},
                                       {"vocab_size", 2048},
                                       {"rope_scaling", scaling_16},
                                       {"load_balance_coeff", bias}});
  const Value scout_alike = changed(scout, {{"load_balance_coeff", bias}});
  const Value maverick_alike = changed(maverick, {{"load_balance_coeff", bias}});
  plugin.add_flavor("llama4", "debugmodel", "15 million parameters, for tests and first runs",
                    debugmodel);
  plugin.add_flavor("llama4", "17bx16e", "Scout's sizes, all layers with positions", scout_alike);
  plugin.add_flavor("llama4", "17bx128e", "Maverick's sizes, all layers with positions",
                    maverick_alike);
  // torchtitan v0.2.2's: the first of four layers has no positions, the others attend in chunks
  const auto irope = [](const Value& flavor, int64_t chunk) {
    return changed(
        flavor,
        {{"every_n_layers_nope", 4}, {"attention_chunk_size", chunk}, {"attn_type", "flex"}});
  };
  plugin.add_flavor("llama4", "debugmodel_irope",
                    "debugmodel, layers without positions, within documents",
                    irope(debugmodel, 256));
  plugin.add_flavor("llama4", "17bx16e_irope",
                    "17bx16e, layers without positions, within documents",
                    irope(scout_alike, 8192));
  plugin.add_flavor("llama4", "17bx128e_irope",
                    "17bx128e, layers without positions, within documents",
                    irope(maverick_alike, 8192));

  // the published models: the last of four layers has no positions
  const auto as_published = [](const Value& flavor) {
    return changed(
        flavor,
        {{"every_n_layers_nope", 4}, {"nope_layer_offset", 3}, {"attn_temperature_tuning", true}});
  };
  plugin.add_flavor("llama4", "Scout", "Llama 4 Scout (17B, 16 experts), as published",
                    changed(as_published(scout), {{"use_qk_norm", true}}));
  plugin.add_flavor("llama4", "Maverick", "Llama 4 Maverick (17B, 128 experts), as published",
                    as_published(maverick));
}
