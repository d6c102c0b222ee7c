#include <titan/models/rope_scaling.h>

#include <titan/error.h>

namespace titan::models {

void declare_rope_scaling(SchemaBuilder& table) {
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

nn::RopeOptions scaled_rope(double theta, const RopeScaling& scaling) {
  TITAN_CHECK(scaling.low_freq_factor <= scaling.high_freq_factor, config,
              "model.rope_scaling.low_freq_factor = ", scaling.low_freq_factor,
              " is above model.rope_scaling.high_freq_factor = ", scaling.high_freq_factor);
  return {.theta = theta,
          .scaling_factor = scaling.scaling_factor,
          .low_freq_factor = scaling.low_freq_factor,
          .high_freq_factor = scaling.high_freq_factor,
          .original_max_position = scaling.original_max_position_embeddings};
}

HfRope hf_rope(const RopeScaling& scaling) {
  return {.type = "llama3",
          .keys = {{.key = "factor",
                    .option = "rope_scaling.scaling_factor",
                    .ours = scaling.scaling_factor,
                    .use = HfKey::written_only},
                   {.key = "low_freq_factor",
                    .option = "rope_scaling.low_freq_factor",
                    .ours = scaling.low_freq_factor,
                    .use = HfKey::written_only},
                   {.key = "high_freq_factor",
                    .option = "rope_scaling.high_freq_factor",
                    .ours = scaling.high_freq_factor,
                    .use = HfKey::written_only},
                   {.key = "original_max_position_embeddings",
                    .option = "rope_scaling.original_max_position_embeddings",
                    .ours = scaling.original_max_position_embeddings,
                    .use = HfKey::written_only}}};
}

Value hf_rope_scaling(const RopeScaling& scaling) {
  return scaling.scaling_factor == 1 ? Value() : hf_rope(scaling).written();
}

}  // namespace titan::models
