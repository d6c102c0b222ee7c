// Python's text forms of values: str(), repr(), json.dumps, % and str.format. Used by the renderer,
// methods and filters.
#pragma once

#include <string>
#include <string_view>

#include "object.h"

namespace titan::jinja {

std::string str_of(const Object& object);
std::string repr_of(const Object& object);
std::string float_repr(double value);

struct JsonOptions {
  bool ensure_ascii = false;
  int64_t indent = -1;  ///< < 0: on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
/// json.dumps. Raises for values that are not JSON serializable.
std::string json_of(const Object& object, const JsonOptions& options);

/// `pattern % value`
std::string format_percent(std::string_view pattern, const Object& value);
/// pattern.format(...)
std::string format_braces(std::string_view pattern, const Arguments& arguments);
/// "&" to "&amp;" and so on, as MarkupSafe does.
std::string escape_html(std::string_view text);

}  // namespace titan::jinja
