// Whose names and orders of rows stored weights have: torchtitan's and Meta's have the names of
// Titan's and other rows, so nothing but a file's own word tells them apart. Used where weights
// without a manifest are loaded, and by titan convert.
#pragma once

#include <string>

#include <titan/checkpoints/tensor_index.h>

#include "core/config/schema/job_sections.h"

namespace titan::core {

/// Weights without a manifest that are to be taken as Titan's own. Throws a config Error naming the
/// first file that does not say so, unless [checkpoint] take_on_trust has "row_order". `place`
/// names the weights.
void require_own_convention(const TensorIndex& index, const std::string& place,
                            const CheckpointSection& section);

/// Weights that are to be taken as those of others. Throws a config Error naming the first file
/// that says that it is Titan's. `direction`: of titan convert.
void refuse_own_convention(const TensorIndex& index, const std::string& place,
                           const std::string& direction);

}  // namespace titan::core
