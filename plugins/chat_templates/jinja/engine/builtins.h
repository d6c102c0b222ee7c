// The filters, tests and functions that every template has: those of Jinja2, and those that
// transformers adds (tojson without HTML escapes, raise_exception, strftime_now). Used by parser
// and renderer.
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
/// The global function of this name; nullopt: none.
std::optional<Object> global_of(std::string_view name);

/// Filters get their value as the first argument. These look up the filters of sequence_filters.cpp
/// and text_filters.cpp; null: none.
using Filter = Object (*)(Runtime& runtime, Arguments arguments);
Filter sequence_filter(std::string_view name);
Filter text_filter(std::string_view name);

}  // namespace titan::jinja
