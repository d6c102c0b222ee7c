// Options of [parallelism.pipeline].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace titan::pipeline {

struct PipelineOptions {
  int64_t microbatch_size = 1;  // rows
  /// Names of layers or of modules below them, per stage; unset: split by weight.
  std::optional<std::vector<std::vector<std::string>>> modules_per_stage;
  int64_t first_stage_less_layers = 1;  // weight of the model's first layer, in layers
  int64_t last_stage_less_layers = 1;   // weight of its last
};

}  // namespace titan::pipeline
