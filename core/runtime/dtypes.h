// The configuration's types of numbers as LibTorch's. Used by the assembly and the checkpointer.
#pragma once

#include <c10/core/ScalarType.h>

#include "core/config/job_sections.h"

namespace titan::core {

inline at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return at::kHalf;
    case Dtype::bfloat16:
      return at::kBFloat16;
    case Dtype::float32:
      return at::kFloat;
    case Dtype::float64:
      return at::kDouble;
  }
  return at::kFloat;
}

}  // namespace titan::core
