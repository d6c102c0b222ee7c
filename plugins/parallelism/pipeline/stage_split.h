// Assigns a model's layers to the stages of a pipeline.
#pragma once

#include <cstddef>
#include <vector>

#include <titan/model.h>

#include "options.h"

namespace titan::pipeline {

/// Layers [first, last) of the whole model.
struct LayerRange {
  size_t first = 0;
  size_t last = 0;
};

/// Assigns `num_layers` layers to `num_stages` stages in order, like torchtitan v0.2.2. The first
/// layer (embedding) and the last (norm and head) weigh `first_weight` and `last_weight` layers;
/// earlier stages get the remainder. Throws a config Error when there are more stages than weights,
/// or the first or last layer weighs more than a stage.
std::vector<LayerRange> split_by_weight(size_t num_layers, int num_stages, int64_t first_weight,
                                        int64_t last_weight);

/// Splits by the options. Explicit modules are named by layer or by a module below it ("norm" of
/// layer "output"). Every layer must be in one stage, in the model's order. Throws a config Error
/// that lists all problems.
std::vector<LayerRange> split_into_stages(ModelPart& part, int num_stages,
                                          const PipelineOptions& options);

}  // namespace titan::pipeline
