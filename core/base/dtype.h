// The dtypes that a run can store and compute in, by name. Used by the configuration and by the
// code that reads and writes weights; runtime/tensors maps them to LibTorch's.
#pragma once

#include <optional>
#include <string_view>

namespace titan::core {

enum class Dtype { float16, bfloat16, float32, float64 };

/// "bfloat16": in the configuration, on command lines and in PyTorch.
const char* text_of(Dtype dtype);
/// "BF16": in safetensors.
const char* stored_name(Dtype dtype);
std::optional<Dtype> dtype_of(std::string_view text);
std::optional<Dtype> dtype_stored_as(std::string_view stored_name);

}  // namespace titan::core
