// What tensor parallelism asks of a model. Used before anything is cut.
#pragma once

#include <cstdint>

#include "model_layout.h"

namespace titan::tensor_parallel {

/// Throws one config Error that lists all that does not fit `degree` ranks, and the degrees that
/// would: heads that do not divide, a vocabulary with fewer rows than ranks need, hints that cannot
/// be followed.
void check_fits(const ModelLayout& layout, int64_t degree);

}  // namespace titan::tensor_parallel
