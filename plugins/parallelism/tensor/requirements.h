// Checks that a model fits tensor parallelism, before anything is cut.
#pragma once

#include <cstdint>

#include "model_layout.h"

namespace titan::tensor_parallel {

/// Throws one config Error that lists all problems for `degree` ranks and the degrees that would
/// fit. Problems: heads that do not divide, a vocabulary with too few rows, hints that cannot be
/// followed.
void check_fits(const ModelLayout& layout, int64_t degree);

}  // namespace titan::tensor_parallel
