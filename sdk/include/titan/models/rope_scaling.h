// Scaling of long rotary wavelengths with a smooth transition (rope_type "llama3"): its options in
// [model] and its keys in config.json. Grattafiori et al., 2024.
#pragma once

#include <cstdint>

#include <titan/export.h>
#include <titan/models/hf_table.h>
#include <titan/nn/rope.h>
#include <titan/options.h>

TITAN_OPTIONAL_HEADER(models_rope_scaling);

namespace titan::models {

/// A scaling_factor of 1 means no scaling. If low_freq_factor equals high_freq_factor, there is no
/// smooth transition.
struct RopeScaling {
  double scaling_factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;
};

/// Declares the options of the table model.rope_scaling.
TITAN_API void declare_rope_scaling(SchemaBuilder& table);

/// Rotary options with base `theta` and this scaling. Throws a config Error that names the keys of
/// [model] if low_freq_factor > high_freq_factor.
TITAN_API nn::RopeOptions scaled_rope(double theta, const RopeScaling& scaling);

/// Its keys in config.json, and their options in the table model.rope_scaling.
TITAN_API HfRope hf_rope(const RopeScaling& scaling);
/// The value of rope_scaling in an export; null without scaling.
TITAN_API Value hf_rope_scaling(const RopeScaling& scaling);

}  // namespace titan::models
