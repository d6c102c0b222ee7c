// The model in words, for [model] print_after_conversion.
#pragma once

#include <string>

#include <titan/model.h>

namespace titan::core {

/// A line for each module, in order: its name, its class, its own parameters and who computes in
/// its place. Layers in a row that are alike but for their names share their lines.
std::string model_text(ModelPart& part);

}  // namespace titan::core
