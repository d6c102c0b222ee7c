// Python's operators on values, with Python's errors. Used by the renderer, methods and filters.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "comparison.h"

namespace titan::jinja {

inline constexpr size_t kLongestText = size_t{1} << 28;  ///< of a value, in bytes

enum class Operator { add, subtract, multiply, divide, floor_divide, modulo, power };
Object apply(Operator op, const Object& a, const Object& b);
Object negated(const Object& value);

/// `needle in haystack`
bool contains(const Object& haystack, const Object& needle);
/// Raises for values that are not iterable.
std::vector<Object> items_of(const Object& object);
int64_t length_of(const Object& object);
/// int(value) and float(value) of numbers and texts; nullopt: a ValueError.
Object int_of(const Object& number);
std::optional<Object> parsed_int(std::string_view text, int64_t base);
std::optional<double> parsed_float(std::string_view text);

/// `object[key]` and `object.name`; undefined if there is none. As Jinja, each falls back to the
/// other kind.
Object item_of(const Object& object, const Object& key);
Object attribute_of(const Object& object, const std::string& name);
/// `object[start:stop:step]`; a missing bound is None.
Object slice_of(const Object& object, const Object& start, const Object& stop, const Object& step);

/// A bound method of the object's Python type; nullopt: the type has no such attribute.
std::optional<Object> method_of(const Object& object, std::string_view name);

}  // namespace titan::jinja
