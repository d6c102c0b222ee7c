// The types of numbers that a run can be stored and computed in, by their names. Used by the
// configuration and by whoever reads or writes weights; runtime/tensors has LibTorch's side.
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
