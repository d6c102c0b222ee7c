// Describes the model as text, for [model] print_after_conversion.
#pragma once

#include <string>

#include <titan/model.h>

namespace titan::core {

/// A line for each module, in order: its name, its class, its own parameters and its kernel owner.
/// Consecutive layers that differ only in their names share their lines.
std::string model_text(ModelPart& part);

}  // namespace titan::core
