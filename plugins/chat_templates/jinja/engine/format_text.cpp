// Python's two format languages: "%05.2f" % x and "{:>8}".format(x).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "characters.h"
#include "operations.h"
#include "python_text.h"

namespace titan::jinja {
namespace {

constexpr int64_t kWidestField = 10'000;

struct Spec {
  std::string fill = " ";
  char align = 0;  // '<', '>', '^', '='; 0: by the type
  char sign = '-';
  bool is_alternate = false, has_commas = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

int64_t read_number(std::string_view text, size_t& at) {
  int64_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > kWidestField) raise("a width or precision above 10000");
  }
  return value;
}

std::string padded(const std::string& text, const Spec& spec, char usual_align) {
  const auto length = static_cast<int64_t>(num_characters(text));
  if (length >= spec.width) return text;
  const auto fill = [&](int64_t count) {
    std::string result;
    for (; count > 0; --count) result += spec.fill;
    return result;
  };
  const int64_t missing = spec.width - length;
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ');
  switch (spec.align ? spec.align : usual_align) {
    case '<':
      return text + fill(missing);
    case '^':
      return fill(missing / 2) + text + fill(missing - missing / 2);
    case '=':
      return has_sign ? text[0] + fill(missing) + text.substr(1) : fill(missing) + text;
    default:
      return fill(missing) + text;
  }
}

std::string with_sign(std::string digits, bool is_negative, char sign) {
  if (is_negative) return "-" + digits;
  return sign == '+' || sign == ' ' ? sign + digits : digits;
}

void add_commas(std::string& digits) {
  size_t end = digits.find_first_not_of("0123456789");
  if (end == digits.npos) end = digits.size();
  for (; end > 3; end -= 3) digits.insert(end - 3, ",");
}

std::string float_digits(double value, const Spec& spec) {
  const char type = spec.type ? spec.type : 'g';
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : "inf";
  const char pattern[] = {'%', '.', '*', type == '%' ? 'f' : type, 0};
  char buffer[512];
  const int64_t precision = spec.precision < 0 ? 6 : std::min<int64_t>(spec.precision, 100);
  std::snprintf(buffer, sizeof buffer, pattern, static_cast<int>(precision),
                std::fabs(type == '%' ? value * 100 : value));
  return type == '%' ? std::string(buffer) + "%" : buffer;
}

std::string integer_digits(int64_t value, const Spec& spec) {
  const auto magnitude =
      value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char buffer[80];
  switch (spec.type) {
    case 'x':
      std::snprintf(buffer, sizeof buffer, "%lx", magnitude);
      break;
    case 'X':
      std::snprintf(buffer, sizeof buffer, "%lX", magnitude);
      break;
    case 'o':
      std::snprintf(buffer, sizeof buffer, "%lo", magnitude);
      break;
    default:
      std::snprintf(buffer, sizeof buffer, "%lu", magnitude);
  }
  return buffer;
}

bool is_float_type(char type) {
  return std::string_view("eEfFgG%").find(type) != std::string_view::npos;
}

std::string number_text(const Object& value, const Spec& spec) {
  std::string digits;
  bool is_negative = false;
  if (value.is_float() || is_float_type(spec.type)) {
    is_negative = std::signbit(value.number());
    digits = spec.type || spec.precision >= 0 ? float_digits(value.number(), spec)
                                              : float_repr(std::fabs(value.number()));
  } else {
    is_negative = value.integer() < 0;
    digits = integer_digits(value.integer(), spec);
  }
  if (spec.has_commas) add_commas(digits);
  return with_sign(std::move(digits), is_negative, spec.sign);
}

std::string shortened_to(std::string text, int64_t precision) {
  if (precision < 0) return text;
  const std::vector<size_t> starts = character_starts(text);
  if (static_cast<size_t>(precision) + 1 < starts.size())
    text.resize(starts[static_cast<size_t>(precision)]);
  return text;
}

/// [[fill]align][sign][#][0][width][,][.precision][type]
Spec read_spec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  const auto is_align = [&](size_t i) {
    return i < text.size() && std::string_view("<>^=").find(text[i]) != std::string_view::npos;
  };
  if (!text.empty()) {
    if (const size_t first = character_at(text, 0).length; is_align(first)) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      at = first + 1;
    } else if (is_align(0)) {
      spec.align = text[0];
      at = 1;
    }
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' '))
    spec.sign = text[at++];
  if (at < text.size() && text[at] == '0') {
    if (!spec.align) spec.align = '=', spec.fill = "0";
    ++at;
  }
  spec.width = read_number(text, at);
  if (at < text.size() && text[at] == ',') spec.has_commas = true, ++at;
  if (at < text.size() && text[at] == '.') spec.precision = read_number(text, ++at);
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size() ||
      std::string_view("\0sdioxXeEfFgG%", 14).find(spec.type) == std::string_view::npos)
    raise("Invalid format specifier '" + std::string(text) + "'");
  return spec;
}

std::string formatted(const Object& value, std::string_view spec_text) {
  if (spec_text.empty()) return str_of(value);
  const Spec spec = read_spec(spec_text);
  if (value.is_text()) {
    if (spec.type && spec.type != 's')
      raise(std::string("Unknown format code '") + spec.type + "' for object of type 'str'");
    return padded(shortened_to(str_of(value), spec.precision), spec, '<');
  }
  if (!value.is_number())
    raise("unsupported format string passed to " + type_name(value) + ".__format__");
  if (spec.type == 's' || (value.is_float() && spec.type && !is_float_type(spec.type)))
    raise(std::string("Unknown format code '") + spec.type + "' for object of type '" +
          type_name(value) + "'");
  return padded(number_text(value, spec), spec, '>');
}

/// The values of a "%" pattern, in order or by name.
class PercentValues {
 public:
  explicit PercentValues(const Object& value) : value_(value) {}

  const Object& next() {
    const Sequence* tuple = this->tuple();
    const size_t count = tuple ? tuple->items.size() : 1;
    if (used_ >= count) raise("not enough arguments for format string");
    return tuple ? tuple->items[used_++] : (++used_, value_);
  }
  const Object& named(std::string_view name) {
    if (!value_.dict()) raise("format requires a mapping");
    is_by_name_ = true;
    const Object* found = value_.dict()->find(name);
    if (!found) raise("KeyError: '" + std::string(name) + "'");
    return *found;
  }
  void finish() const {
    const Sequence* tuple = this->tuple();
    if (tuple ? used_ < tuple->items.size()
              : used_ == 0 && !is_by_name_ && !value_.mapping() && !value_.sequence())
      raise("not all arguments converted during string formatting");
  }

 private:
  const Sequence* tuple() const {
    const Sequence* sequence = value_.sequence();
    return sequence && sequence->kind == SequenceKind::tuple ? sequence : nullptr;
  }
  const Object& value_;
  size_t used_ = 0;
  bool is_by_name_ = false;
};

std::string percent_field(char type, Spec spec, const Object& value) {
  switch (type) {
    case 's':
      return padded(shortened_to(str_of(value), spec.precision), spec, '>');
    case 'r':
    case 'a':
      return padded(shortened_to(repr_of(value), spec.precision), spec, '>');
    case 'd':
    case 'i':
    case 'u': {
      if (!value.is_number())
        raise("%d format: a real number is required, not " + type_name(value));
      spec.type = 0;
      return padded(number_text(int_of(value), spec), spec, '>');
    }
    case 'x':
    case 'X':
    case 'o':
      if (!value.is_integer()) raise("%x format: an integer is required, not " + type_name(value));
      spec.type = type;
      return padded(number_text(value, spec), spec, '>');
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (!value.is_number()) raise("must be real number, not " + type_name(value));
      spec.type = type;
      return padded(number_text(value, spec), spec, '>');
    default:
      raise(std::string("unsupported format character '") + type + "'");
  }
}

}  // namespace

std::string format_percent(std::string_view pattern, const Object& value) {
  std::string result;
  PercentValues values(value);
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '%') {
      result += pattern[at++];
      continue;
    }
    ++at;
    if (at < pattern.size() && pattern[at] == '%') {
      result += '%';
      ++at;
      continue;
    }
    std::optional<std::string_view> name;
    if (at < pattern.size() && pattern[at] == '(') {
      const size_t end = pattern.find(')', at);
      if (end == pattern.npos) raise("incomplete format key");
      name = pattern.substr(at + 1, end - at - 1);
      at = end + 1;
    }
    Spec spec;
    for (; at < pattern.size() && std::string_view("-+ #0").find(pattern[at]) != pattern.npos;
         ++at) {
      if (pattern[at] == '-') spec.align = '<';
      if (pattern[at] == '+' || (pattern[at] == ' ' && spec.sign != '+')) spec.sign = pattern[at];
      if (pattern[at] == '0' && spec.align != '<') spec.align = '=', spec.fill = "0";
    }
    if (spec.align == '<') spec.fill = " ";
    spec.width = read_number(pattern, at);
    if (at < pattern.size() && pattern[at] == '.') spec.precision = read_number(pattern, ++at);
    if (at >= pattern.size()) raise("incomplete format");
    const Object& field = name ? values.named(*name) : values.next();
    result += percent_field(pattern[at++], spec, field);
  }
  values.finish();
  return result;
}

std::string format_braces(std::string_view pattern, const Arguments& arguments) {
  std::string result;
  size_t next = 0;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if ((c == '{' || c == '}') && at + 1 < pattern.size() && pattern[at + 1] == c) {
      result += c;
      ++at;
      continue;
    }
    if (c == '}') raise("Single '}' encountered in format string");
    if (c != '{') {
      result += c;
      continue;
    }
    const size_t end = pattern.find('}', at);
    if (end == pattern.npos) raise("expected '}' before end of string");
    std::string_view field = pattern.substr(at + 1, end - at - 1);
    at = end;
    std::string_view spec;
    if (const size_t colon = field.find(':'); colon != field.npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    if (field.size() >= 2 && field[field.size() - 2] == '!') {
      conversion = field.back();
      field.remove_suffix(2);
    }
    if (field.find_first_of(".[{") != field.npos || spec.find('{') != spec.npos)
      raise("str.format with attributes, items or nested fields is not supported here");
    const Object* value = nullptr;
    if (field.find_first_not_of("0123456789") == field.npos) {
      size_t digit = 0;
      const size_t index = field.empty() ? next++ : static_cast<size_t>(read_number(field, digit));
      if (index >= arguments.positional.size())
        raise("Replacement index " + std::to_string(index) +
              " out of range for positional args tuple");
      value = &arguments.positional[index];
    } else {
      for (const auto& [name, named] : arguments.named)
        if (name == field) value = &named;
      if (!value) raise("KeyError: '" + std::string(field) + "'");
    }
    if (conversion == 'r')
      result += formatted(repr_of(*value), spec);
    else
      result += formatted(conversion == 's' ? Object(str_of(*value)) : *value, spec);
  }
  return result;
}

}  // namespace titan::jinja
