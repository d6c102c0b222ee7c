// Scaling of long rotary wavelengths, smooth between two of them, as [model] says it and as
// config.json does (rope_type "llama3"). Grattafiori et al., 2024.
#pragma once

#include <cstdint>

#include <titan/export.h>
#include <titan/models/hf_table.h>
#include <titan/nn/rope.h>
#include <titan/options.h>

TITAN_OPTIONAL_HEADER(models_rope_scaling);

namespace titan::models {

/// A factor of 1 means none. Where the two ends are one, wavelengths are scaled or left alone, with
/// nothing in between.
struct RopeScaling {
  double scaling_factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;
};

/// Declares it within model.rope_scaling.
TITAN_API void declare_rope_scaling(SchemaBuilder& table);

/// Wavelengths of base `theta`, scaled so. Throws a config Error in the words of [model] where one
/// end is beyond the other.
TITAN_API nn::RopeOptions scaled_rope(double theta, const RopeScaling& scaling);

/// Its keys in config.json, which give the options of the table model.rope_scaling.
TITAN_API HfRope hf_rope(const RopeScaling& scaling);
/// The value of rope_scaling in an export; null without scaling.
TITAN_API Value hf_rope_scaling(const RopeScaling& scaling);

}  // namespace titan::models
