// The commands of titan-models, which use a model that is trained: a file each.
#pragma once

#include <string>
#include <vector>

#include <titan/program/exit_codes.h>

namespace titan::core {

int convert_weights(const std::vector<std::string>& arguments);

}  // namespace titan::core
