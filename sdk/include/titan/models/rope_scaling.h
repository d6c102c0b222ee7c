// The scaling of long rotary wavelengths that Llama 3.1 and Llama 4 have, as their [model] says it.
#pragma once

#include <cstdint>

#include <titan/nn/rope.h>
#include <titan/options.h>

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
void declare_rope_scaling(SchemaBuilder& table);

/// Wavelengths of base `theta`, scaled so. Throws a config Error in the words of [model] where one
/// end is beyond the other.
nn::RopeOptions scaled_rope(double theta, const RopeScaling& scaling);

}  // namespace titan::models
