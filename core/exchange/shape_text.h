// Formats shapes for messages. Used by the files of this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace titan::core {

/// "(128, 64)"
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace titan::core
