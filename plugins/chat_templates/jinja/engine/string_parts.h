// Splits, replaces and pads texts as Python's str. Used by methods and filters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "object.h"

namespace titan::jinja {

/// str.split and str.rsplit; `most` < 0: no limit. Raise for an empty separator.
std::vector<Object> split_at(std::string_view text, std::string_view separator, int64_t most);
std::vector<Object> split_at_last(std::string_view text, std::string_view separator, int64_t most);
/// Split at white space.
std::vector<Object> split_at_space(std::string_view text, int64_t most);
std::vector<Object> split_at_last_space(std::string_view text, int64_t most);

/// str.replace; `count` < 0: all.
std::string replaced(std::string_view text, std::string_view old, std::string_view by,
                     int64_t count);
/// str.center
std::string centered(std::string_view text, int64_t width, std::string_view fill);

}  // namespace titan::jinja
