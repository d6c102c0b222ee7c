// Filters on texts and single values.
#include <algorithm>
#include <cmath>
#include <map>

#include "bound_arguments.h"
#include "builtins.h"
#include "characters.h"
#include "operations.h"
#include "python_text.h"
#include "string_parts.h"

namespace titan::jinja {
namespace {

Object tojson(Runtime&, Arguments arguments) {
  const BoundArguments bound("tojson", std::move(arguments),
                             {"x", "ensure_ascii", "indent", "separators", "sort_keys"}, 1);
  JsonOptions options = {.ensure_ascii = bound.boolean(1, false),
                         .sort_keys = bound.boolean(4, false)};
  if (bound.has(2) && !bound[2].is_none()) {
    options.indent = std::clamp<int64_t>(bound.integer(2, 0), 0, 100);
    options.item_separator = ",";
  }
  if (bound.has(3) && !bound[3].is_none()) {
    const std::vector<Object> two = items_of(bound[3]);
    if (two.size() != 2 || !two[0].is_text() || !two[1].is_text())
      raise("tojson: separators must be two strings");
    options.item_separator = *two[0].text();
    options.key_separator = *two[1].text();
  }
  return json_of(bound[0], options);
}

Object default_of(Runtime&, Arguments arguments) {
  const BoundArguments bound("default", std::move(arguments), {"value", "default_value", "boolean"},
                             1);
  const bool is_missing =
      bound[0].is_undefined() || (bound.boolean(2, false) && !is_true(bound[0]));
  return is_missing ? bound.or_else(1, "") : bound[0];
}

Object trimmed(Runtime&, Arguments arguments) {
  const BoundArguments bound("trim", std::move(arguments), {"value", "chars"}, 1);
  const std::string text = str_of(bound[0]);
  if (!bound.has(1) || bound[1].is_none()) return std::string(strip(text));
  return std::string(strip(text, bound.text(1)));
}

Object indented(Runtime&, Arguments arguments) {
  const BoundArguments bound("indent", std::move(arguments), {"s", "width", "first", "blank"}, 1);
  const std::string text = bound.text(0) + "\n";
  const std::string by =
      bound.has(1) && bound[1].is_text()
          ? *bound[1].text()
          : std::string(static_cast<size_t>(std::clamp<int64_t>(bound.integer(1, 4), 0, 10'000)),
                        ' ');
  const bool blank = bound.boolean(3, false);
  std::string result;
  bool is_first = true;
  for (const std::string_view line : split_lines(text)) {
    if (!is_first) {
      result += '\n';
      if (blank || !line.empty()) result += by;
    }
    result += line;
    is_first = false;
  }
  return bound.boolean(2, false) ? by + result : result;
}

Object replaced_in(Runtime&, Arguments arguments) {
  const BoundArguments bound("replace", std::move(arguments), {"s", "old", "new", "count"}, 3);
  const int64_t count = bound.has(3) && !bound[3].is_none() ? bound.integer(3, -1) : -1;
  return replaced(str_of(bound[0]), str_of(bound[1]), str_of(bound[2]), count);
}

Object as_int(Runtime&, Arguments arguments) {
  const BoundArguments bound("int", std::move(arguments), {"value", "default", "base"}, 1);
  const Object& value = bound[0];
  if (value.is_undefined()) raise(value.why_undefined());
  if (value.is_number() && std::isfinite(value.number())) return int_of(value);
  if (const std::string* text = value.text()) {
    if (const auto number = parsed_int(*text, bound.integer(2, 10))) return *number;
    const auto number = parsed_float(*text);
    if (number && std::isfinite(*number)) return int_of(*number);
  }
  return bound.or_else(1, int64_t{0});
}

Object as_float(Runtime&, Arguments arguments) {
  const BoundArguments bound("float", std::move(arguments), {"value", "default"}, 1);
  const Object& value = bound[0];
  if (value.is_undefined()) raise(value.why_undefined());
  if (value.is_number()) return value.number();
  if (const std::string* text = value.text())
    if (const auto number = parsed_float(*text)) return *number;
  return bound.or_else(1, 0.0);
}

/// As Python's round: by the exact value, half to even.
double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits <= 0) {
    const double scale = std::pow(10.0, static_cast<double>(std::min<int64_t>(-digits, 300)));
    return std::nearbyint(value / scale) * scale;
  }
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(std::min<int64_t>(digits, 300)),
                value);
  return std::strtod(buffer, nullptr);
}

Object round_of(Runtime&, Arguments arguments) {
  const BoundArguments bound("round", std::move(arguments), {"value", "precision", "method"}, 1);
  const std::string method = bound.has(2) ? bound.text(2) : "common";
  const int64_t precision = std::clamp<int64_t>(bound.integer(1, 0), -300, 300);
  if (!bound[0].is_number())
    raise("type " + type_name(bound[0]) + " doesn't define __round__ method");
  if (method == "common") {
    if (bound[0].is_integer() && precision >= 0) return int_of(bound[0]);
    const double result = rounded(bound[0].number(), precision);
    return bound[0].is_integer() ? int_of(result) : Object(result);
  }
  if (method != "ceil" && method != "floor") raise("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = bound[0].number() * scale;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

Object absolute(Runtime&, Arguments arguments) {
  const BoundArguments bound("abs", std::move(arguments), {"x"}, 1);
  if (!bound[0].is_number()) raise("bad operand type for abs(): '" + type_name(bound[0]) + "'");
  return bound[0].number() < 0   ? negated(bound[0])
         : bound[0].is_integer() ? Object(bound[0].integer())
                                 : bound[0];
}

Object title_filter(Runtime&, Arguments arguments) {
  const BoundArguments bound("title", std::move(arguments), {"s"}, 1);
  const std::string text = str_of(bound[0]);
  std::string result;
  bool is_start = true;  // after white space, a hyphen or an opening bracket
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    const std::string one = text.substr(i, c.length);
    result += is_start ? upper(one) : lower(one);
    is_start = is_space(c.value) || c.value == '-' || c.value == '(' || c.value == '{' ||
               c.value == '[' || c.value == '<';
    i += c.length;
  }
  return result;
}

Object truncated(Runtime&, Arguments arguments) {
  const BoundArguments bound("truncate", std::move(arguments),
                             {"s", "length", "killwords", "end", "leeway"}, 1);
  const std::string &text = bound.text(0), end = bound.has(3) ? bound.text(3) : "...";
  const int64_t length = bound.integer(1, 255), leeway = bound.integer(4, 5);
  const auto end_length = static_cast<int64_t>(num_characters(end));
  if (length < end_length)
    raise("expected length >= " + std::to_string(end_length) + ", got " + std::to_string(length));
  if (leeway < 0) raise("expected leeway >= 0, got " + std::to_string(leeway));
  const std::vector<size_t> starts = character_starts(text);
  if (static_cast<int64_t>(starts.size()) - 1 <= length + leeway) return text;
  std::string kept = text.substr(0, starts[static_cast<size_t>(length - end_length)]);
  if (!bound.boolean(2, false))
    if (const size_t blank = kept.rfind(' '); blank != kept.npos) kept.resize(blank);
  return kept + end;
}

Object word_count(Runtime&, Arguments arguments) {
  const BoundArguments bound("wordcount", std::move(arguments), {"s"}, 1);
  const std::string text = str_of(bound[0]);
  int64_t count = 0;
  bool is_inside = false;
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    count += is_word(c.value) && !is_inside;
    is_inside = is_word(c.value);
    i += c.length;
  }
  return count;
}

Object percent_format(Runtime&, Arguments arguments) {
  if (arguments.positional.size() > 1 && !arguments.named.empty())
    raise("can't handle positional and keyword arguments at the same time");
  const std::string pattern = str_of(arguments.positional.at(0));
  if (arguments.named.empty())
    return format_percent(
        pattern, Object::tuple({arguments.positional.begin() + 1, arguments.positional.end()}));
  auto named = std::make_shared<Mapping>();
  for (auto& [name, value] : arguments.named) named->set(name, std::move(value));
  return format_percent(pattern, named);
}

/// A filter of one argument, a text.
template <std::string (*function)(std::string_view)>
Object of_text(Runtime&, Arguments arguments) {
  const BoundArguments bound("filter", std::move(arguments), {"s"}, 1);
  return function(str_of(bound[0]));
}

}  // namespace

Filter text_filter(std::string_view name) {
  static const std::map<std::string_view, Filter> all = {
      {"tojson", tojson},
      {"default", default_of},
      {"d", default_of},
      {"trim", trimmed},
      {"indent", indented},
      {"replace", replaced_in},
      {"lower", of_text<lower>},
      {"upper", of_text<upper>},
      {"capitalize", of_text<capitalize>},
      {"title", title_filter},
      {"truncate", truncated},
      {"wordcount", word_count},
      {"format", percent_format},
      {"int", as_int},
      {"float", as_float},
      {"round", round_of},
      {"abs", absolute},
      {"center",
       [](Runtime&, Arguments arguments) -> Object {
         const BoundArguments bound("center", std::move(arguments), {"value", "width"}, 1);
         return centered(str_of(bound[0]), bound.integer(1, 80), " ");
       }},
      {"string",
       [](Runtime&, Arguments arguments) -> Object {
         const BoundArguments bound("string", std::move(arguments), {"object"}, 1);
         return bound[0].is_text() ? bound[0] : Object(str_of(bound[0]));
       }},
      {"safe",
       [](Runtime&, Arguments arguments) -> Object {
         const BoundArguments bound("safe", std::move(arguments), {"value"}, 1);
         return Object::markup(str_of(bound[0]));
       }},
      {"escape",
       [](Runtime&, Arguments arguments) -> Object {
         const BoundArguments bound("escape", std::move(arguments), {"s"}, 1);
         return bound[0].is_markup() ? bound[0] : Object::markup(escape_html(str_of(bound[0])));
       }},
  };
  if (name == "e") name = "escape";
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace titan::jinja
