// The filters, tests and functions that every template has: those of Jinja2, and what transformers
// adds (tojson without HTML escapes, raise_exception, strftime_now). Used by parser and renderer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime.h"

namespace titan::jinja {

bool has_filter(std::string_view name);
bool has_test(std::string_view name);
/// Raise for an unknown name.
Object apply_filter(Runtime& runtime, const std::string& name, Object value, Arguments arguments);
bool apply_test(Runtime& runtime, const std::string& name, Object value, Arguments arguments);
/// A function by its name; nothing when there is none.
std::optional<Object> global_of(std::string_view name);

/// Calls with the value in front of the arguments. Filters in files of their own are put into the
/// one table by these.
using Filter = Object (*)(Runtime& runtime, Arguments arguments);
Filter sequence_filter(std::string_view name);
Filter text_filter(std::string_view name);

}  // namespace titan::jinja
