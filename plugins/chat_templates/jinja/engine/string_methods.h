// Methods of str. Used by method_of.
#pragma once

#include <optional>
#include <string_view>

#include "object.h"

namespace titan::jinja {

/// Bound to `self`, a text; nothing when str has no such method, or none that templates need.
std::optional<Object> string_method(const Object& self, std::string_view name);

/// str.replace; count < 0: all.
std::string replaced(std::string_view text, std::string_view old, std::string_view by,
                     int64_t count);
std::string centered(std::string_view text, int64_t width, std::string_view fill);

}  // namespace titan::jinja
