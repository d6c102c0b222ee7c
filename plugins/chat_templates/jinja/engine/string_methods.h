// Methods of str. Used by method_of.
#pragma once

#include <optional>
#include <string_view>

#include "object.h"

namespace titan::jinja {

/// Bound to `self`, a text; nullopt if str has no such method or it is not implemented.
std::optional<Object> string_method(const Object& self, std::string_view name);

}  // namespace titan::jinja
