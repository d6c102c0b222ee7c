// Table of keys of torchtitan's files that are options of plugins. A job may give them without
// choosing the plugin: the plugin's schema checks them, and they have no effect.
#pragma once

namespace titan::core {

struct PluginKey {
  const char* section;
  const char* key;  ///< empty: the whole section is the plugin's
  const char* kind;
  const char* plugin;
};

inline constexpr PluginKey kPluginKeys[] = {
    {"activation_checkpoint", "selective_ac_option", "activation_checkpoint", "selective"},
    {"activation_checkpoint", "per_op_sac_force_recompute_mm_shapes_by_fqns",
     "activation_checkpoint", "selective"},
    {"activation_checkpoint", "early_stop", "activation_checkpoint", "selective"},
    {"activation_checkpoint", "preserve_rng_state", "activation_checkpoint", "selective"},
    {"activation_checkpoint", "determinism_check", "activation_checkpoint", "selective"},
    {"activation_checkpoint", "debug", "activation_checkpoint", "selective"},
    {"activation_checkpoint", "memory_budget", "activation_checkpoint", "memory_budget"},
    {"activation_checkpoint", "visualize_memory_budget_pareto", "activation_checkpoint",
     "memory_budget"},
    {"quantize.linear.float8", "", "converter", "quantize.linear.float8"},
    {"quantize.linear.mx", "", "converter", "quantize.linear.mx"},
    {"quantize.grouped_mm.float8", "", "converter", "quantize.grouped_mm.float8"},
    {"quantize.grouped_mm.mx", "", "converter", "quantize.grouped_mm.mx"},
};

}  // namespace titan::core
