// Converts the dtypes that configuration and files name to LibTorch's. Used by the assembly, the
// checkpoints and the exchange of weights.
#pragma once

#include <string_view>

#include <c10/core/ScalarType.h>

#include "core/base/dtype.h"

namespace titan::core {

at::ScalarType scalar_type(Dtype dtype);

/// "F32" for at::kFloat. Throws an internal Error for a dtype that safetensors does not have.
const char* stored_dtype(at::ScalarType dtype);
/// at::kFloat for "F32". Throws a data Error for a dtype that Titan's tensors cannot have.
at::ScalarType scalar_type(std::string_view stored_dtype);

}  // namespace titan::core
