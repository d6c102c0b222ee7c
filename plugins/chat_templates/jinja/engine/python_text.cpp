#include "python_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "characters.h"
#include "comparison.h"

namespace titan::jinja {
namespace {

/// Limit for values that contain themselves; values from JSON are not nested this deeply.
constexpr int kDeepestValue = 200;

std::string repr_of_text(std::string_view text) {
  const bool has_single = text.find('\'') != text.npos, has_double = text.find('"') != text.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string result(1, quote);
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    char code[16];
    if (c.value == static_cast<unsigned char>(quote) || c.value == '\\')
      (result += '\\') += static_cast<char>(c.value);
    else if (c.value == '\n')
      result += "\\n";
    else if (c.value == '\r')
      result += "\\r";
    else if (c.value == '\t')
      result += "\\t";
    else if (is_printable(c.value))
      result += text.substr(i, c.length);
    else
      result.append(code, static_cast<size_t>(std::snprintf(code, sizeof code,
                                                            c.value < 0x100     ? "\\x%02x"
                                                            : c.value < 0x10000 ? "\\u%04x"
                                                                                : "\\U%08x",
                                                            static_cast<unsigned>(c.value))));
    i += c.length;
  }
  return result += quote;
}

std::string repr_at(const Object& object, int depth);

std::string joined(const std::vector<Object>& items, int depth) {
  std::string result;
  for (const Object& item : items) {
    if (!result.empty()) result += ", ";
    result += repr_at(item, depth);
  }
  return result;
}

std::string repr_of_sequence(const Sequence& sequence, int depth) {
  const std::string inside = joined(sequence.items, depth + 1);
  switch (sequence.kind) {
    case SequenceKind::list:
      return "[" + inside + "]";
    case SequenceKind::tuple:
      return "(" + inside + (sequence.items.size() == 1 ? ",)" : ")");
    case SequenceKind::dict_keys:
      return "dict_keys([" + inside + "])";
    case SequenceKind::dict_values:
      return "dict_values([" + inside + "])";
    case SequenceKind::dict_items:
      return "dict_items([" + inside + "])";
    case SequenceKind::generator:
      break;
  }
  raise("a generator cannot be printed; apply the filter 'list' to it");
}

std::string repr_at(const Object& object, int depth) {
  if (depth > kDeepestValue) raise("maximum recursion depth exceeded");
  if (const std::string* text = object.text()) {
    const std::string written = repr_of_text(*text);
    return object.is_markup() ? "Markup(" + written + ")" : written;
  }
  if (object.is_undefined()) return "Undefined";
  if (const Sequence* sequence = object.sequence()) return repr_of_sequence(*sequence, depth);
  if (const Mapping* mapping = object.mapping()) {
    std::string inside;
    for (const auto& [key, value] : mapping->items) {
      if (!inside.empty()) inside += ", ";
      inside += repr_at(key, depth + 1) + ": " + repr_at(value, depth + 1);
    }
    return mapping->is_namespace ? "<Namespace {" + inside + "}>" : "{" + inside + "}";
  }
  if (object.is_none()) return "None";
  if (object.is_boolean()) return object.integer() ? "True" : "False";
  if (object.is_integer()) return std::to_string(object.integer());
  if (object.is_float()) return float_repr(object.number());
  if (const Loop* loop = object.loop())
    return "<LoopContext " + std::to_string(loop->index0 + 1) + "/" +
           std::to_string(loop->items.size()) + ">";
  return "<function " + object.function()->name + ">";
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonOptions& options) : options_(options) {}

  void write(const Object& object, int depth) {
    if (depth > kDeepestValue) raise("Circular reference detected");
    if (const std::string* text = object.text())
      write_text(*text);
    else if (object.is_none())
      out += "null";
    else if (object.is_boolean())
      out += object.integer() ? "true" : "false";
    else if (object.is_integer())
      out += std::to_string(object.integer());
    else if (object.is_float())
      write_float(object.number());
    else if (const Sequence* list = object.sequence(); list && is_array(list->kind))
      write_list(list->items, depth);
    else if (const Mapping* dict = object.dict())
      write_dict(*dict, depth);
    else
      raise("Object of type " + type_name(object) + " is not JSON serializable");
  }

  std::string out;

 private:
  static bool is_array(SequenceKind kind) {
    return kind == SequenceKind::list || kind == SequenceKind::tuple;
  }
  void write_float(double value) {
    if (std::isnan(value))
      out += "NaN";
    else if (std::isinf(value))
      out += value > 0 ? "Infinity" : "-Infinity";
    else
      out += float_repr(value);
  }
  void write_unit(unsigned unit) {
    char code[16];
    std::snprintf(code, sizeof code, "\\u%04x", unit);
    out += code;
  }
  void write_text(std::string_view text) {
    out += '"';
    for (size_t i = 0; i < text.size();) {
      const Character c = character_at(text, i);
      switch (c.value) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\f':
          out += "\\f";
          break;
        case '\b':
          out += "\\b";
          break;
        default:
          if (c.value >= 0x20 && (c.value < 0x7F || !options_.ensure_ascii)) {
            out += text.substr(i, c.length);
          } else if (c.value >= 0x10000) {
            write_unit(0xD800 + ((c.value - 0x10000) >> 10));
            write_unit(0xDC00 + ((c.value - 0x10000) & 0x3FF));
          } else if (c.value == 0x7F) {
            out += '\x7F';
          } else {
            write_unit(c.value);
          }
      }
      i += c.length;
    }
    out += '"';
  }
  void new_line(int depth) {
    if (options_.indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(depth) * static_cast<size_t>(options_.indent), ' ');
  }
  template <class Items, class Write>
  void write_all(char open, const Items& items, char close, int depth, Write write) {
    out += open;
    bool is_first = true;
    for (const auto& item : items) {
      if (!std::exchange(is_first, false)) out += options_.item_separator;
      new_line(depth + 1);
      write(item);
    }
    if (!is_first) new_line(depth);
    out += close;
  }
  void write_list(const std::vector<Object>& items, int depth) {
    write_all('[', items, ']', depth, [&](const Object& item) { write(item, depth + 1); });
  }
  void write_dict(const Mapping& dict, int depth) {
    std::vector<std::pair<Object, Object>> items = dict.items;
    if (options_.sort_keys)
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    write_all('{', items, '}', depth, [&](const auto& item) {
      write_key(item.first);
      out += options_.key_separator;
      write(item.second, depth + 1);
    });
  }
  void write_key(const Object& key) {
    if (key.is_text()) return write_text(*key.text());
    if (!key.is_none() && !key.is_number())
      raise("keys must be str, int, float, bool or None, not " + type_name(key));
    out += '"';
    write(key, 0);
    out += '"';
  }

  const JsonOptions& options_;
};

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = shortest.find('e');
  const int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  std::string digits(shortest.substr(0, e));
  const std::string sign = digits[0] == '-' ? "-" : "";
  std::erase_if(digits, [](char c) { return c == '.' || c == '-'; });
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string str_of(const Object& object) {
  if (const std::string* text = object.text()) return *text;
  if (object.is_undefined()) return {};
  return repr_of(object);
}

std::string repr_of(const Object& object) {
  return repr_at(object, 0);
}

std::string json_of(const Object& object, const JsonOptions& options) {
  JsonWriter writer(options);
  writer.write(object, 0);
  return std::move(writer.out);
}

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '\'':
        result += "&#39;";
        break;
      case '"':
        result += "&#34;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace titan::jinja
