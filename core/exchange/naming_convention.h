// Checks the naming convention of stored weights. torchtitan's and Meta's weights have the same
// names as Titan's but another order of rows, so only the file's metadata distinguishes them. Used
// where weights without a manifest are loaded, and by titan convert.
#pragma once

#include <string>

#include <titan/checkpoints/tensor_index.h>

#include "core/config/schema/job_sections.h"

namespace titan::core {

/// For weights without a manifest that are loaded as Titan's own. Throws a config Error that names
/// the first file without Titan's mark, unless [checkpoint] take_on_trust has "row_order". `place`
/// names the weights.
void require_own_convention(const TensorIndex& index, const std::string& place,
                            const CheckpointSection& section);

/// For weights that are converted from another convention. Throws a config Error that names the
/// first file with Titan's mark. `direction`: of titan convert.
void refuse_own_convention(const TensorIndex& index, const std::string& place,
                           const std::string& direction);

}  // namespace titan::core
