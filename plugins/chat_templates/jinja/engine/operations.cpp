#include "operations.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "characters.h"
#include "python_text.h"

namespace titan::jinja {

namespace {

[[noreturn]] void raise_undefined(const Object& object) {
  raise(object.why_undefined());
}

void require_defined(const Object& a, const Object& b) {
  if (a.is_undefined()) raise_undefined(a);
  if (b.is_undefined()) raise_undefined(b);
}

bool is_sequence_of(const Object& object, SequenceKind kind) {
  return object.sequence() && object.sequence()->kind == kind;
}

bool is_indexable(const Object& object) {
  return is_sequence_of(object, SequenceKind::list) || is_sequence_of(object, SequenceKind::tuple);
}

[[noreturn]] void raise_operands(const char* sign, const Object& a, const Object& b) {
  raise(std::string("unsupported operand type(s) for ") + sign + ": '" + type_name(a) + "' and '" +
        type_name(b) + "'");
}

const char* sign_of(Operator op) {
  switch (op) {
    case Operator::add:
      return "+";
    case Operator::subtract:
      return "-";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::floor_divide:
      return "//";
    case Operator::modulo:
      return "%";
    case Operator::power:
      return "** or pow()";
  }
  return "";
}

Object repeated(const Object& object, int64_t count) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  if (const std::string* text = object.text()) {
    if (times > 0 && text->size() > kLongestText / times) raise("MemoryError");
    std::string result;
    for (size_t i = 0; i < times; ++i) result += *text;
    return result;
  }
  const Sequence& sequence = *object.sequence();
  if (times > 0 && sequence.items.size() > 1'000'000 / times) raise("MemoryError");
  std::vector<Object> items;
  for (size_t i = 0; i < times; ++i)
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return Object::sequence(std::move(items), sequence.kind);
}

Object joined_texts(const Object& a, const Object& b) {
  if (a.text()->size() + b.text()->size() > kLongestText) raise("a text has grown beyond 256 MiB");
  if (!a.is_markup() && !b.is_markup()) return *a.text() + *b.text();
  return Object::markup((a.is_markup() ? *a.text() : escape_html(*a.text())) +
                        (b.is_markup() ? *b.text() : escape_html(*b.text())));
}

Object added(const Object& a, const Object& b) {
  if (a.is_text() && b.is_text()) return joined_texts(a, b);
  if (a.is_text()) raise("can only concatenate str (not \"" + type_name(b) + "\") to str");
  if (is_indexable(a) && is_indexable(b) && a.sequence()->kind == b.sequence()->kind) {
    std::vector<Object> items = a.sequence()->items;
    items.insert(items.end(), b.sequence()->items.begin(), b.sequence()->items.end());
    return Object::sequence(std::move(items), a.sequence()->kind);
  }
  if (is_indexable(a))
    raise("can only concatenate " + type_name(a) + " (not \"" + type_name(b) + "\") to " +
          type_name(a));
  raise_operands("+", a, b);
}

[[noreturn]] void raise_overflow() {
  raise("integer overflow: this engine supports only 64-bit integers");
}

Object of_integers(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::add:
      if (__builtin_add_overflow(a, b, &result)) raise_overflow();
      return result;
    case Operator::subtract:
      if (__builtin_sub_overflow(a, b, &result)) raise_overflow();
      return result;
    case Operator::multiply:
      if (__builtin_mul_overflow(a, b, &result)) raise_overflow();
      return result;
    case Operator::divide:
      if (b == 0) raise("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case Operator::floor_divide:
    case Operator::modulo: {
      if (b == 0) raise("integer division or modulo by zero");
      if (b == -1)
        return op == Operator::modulo ? Object(int64_t{0}) : of_integers(Operator::subtract, 0, a);
      int64_t quotient = a / b, rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) --quotient, rest += b;
      return op == Operator::modulo ? rest : quotient;
    }
    case Operator::power:
      break;
  }
  if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
  result = 1;
  if (a == 0 || a == 1) return b == 0 ? int64_t{1} : a;
  if (a == -1) return b % 2 == 0 ? int64_t{1} : int64_t{-1};
  for (int64_t i = 0; i < b; ++i)
    if (__builtin_mul_overflow(result, a, &result)) raise_overflow();
  return result;
}

Object of_floats(Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return a + b;
    case Operator::subtract:
      return a - b;
    case Operator::multiply:
      return a * b;
    case Operator::divide:
      if (b == 0) raise("float division by zero");
      return a / b;
    case Operator::floor_divide:
    case Operator::modulo: {
      if (b == 0) raise("float floor division by zero");
      double rest = std::fmod(a, b);
      if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
      return op == Operator::modulo ? rest : std::floor((a - rest) / b + 0.5);
    }
    case Operator::power:
      break;
  }
  return std::pow(a, b);
}

}  // namespace

Object apply(Operator op, const Object& a, const Object& b) {
  if (op == Operator::modulo && a.is_text()) return format_percent(*a.text(), b);
  require_defined(a, b);
  if (a.is_integer() && b.is_integer()) return of_integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return of_floats(op, a.number(), b.number());
  if (op == Operator::add) return added(a, b);
  if (op == Operator::multiply) {
    if (b.is_integer() && (a.is_text() || is_indexable(a))) return repeated(a, b.integer());
    if (a.is_integer() && (b.is_text() || is_indexable(b))) return repeated(b, a.integer());
  }
  raise_operands(sign_of(op), a, b);
}

Object negated(const Object& value) {
  if (value.is_undefined()) raise_undefined(value);
  if (value.is_integer()) return of_integers(Operator::subtract, 0, value.integer());
  if (value.is_float()) return -value.number();
  raise("bad operand type for unary -: '" + type_name(value) + "'");
}

bool contains(const Object& haystack, const Object& needle) {
  if (const std::string* text = haystack.text()) {
    if (!needle.is_text())
      raise("'in <string>' requires string as left operand, not " + type_name(needle));
    return text->find(*needle.text()) != std::string::npos;
  }
  if (const Mapping* dict = haystack.dict()) return dict->find(needle) != nullptr;
  if (haystack.is_undefined()) return false;
  if (!haystack.sequence() && !haystack.loop())
    raise("argument of type '" + type_name(haystack) + "' is not iterable");
  const std::vector<Object> items = items_of(haystack);
  return std::any_of(items.begin(), items.end(),
                     [&](const Object& item) { return equals(item, needle); });
}

std::vector<Object> items_of(const Object& object) {
  if (const Sequence* sequence = object.sequence()) return sequence->items;
  std::vector<Object> items;
  if (object.is_undefined()) return items;
  if (const Mapping* dict = object.dict()) {
    for (const auto& [key, value] : dict->items) items.push_back(key);
    return items;
  }
  if (const std::string* text = object.text()) {
    for (size_t i = 0; i < text->size();) {
      const size_t length = character_at(*text, i).length;
      items.emplace_back(text->substr(i, length));
      i += length;
    }
    return items;
  }
  raise("'" + type_name(object) + "' object is not iterable");
}

int64_t length_of(const Object& object) {
  if (object.is_undefined()) return 0;
  if (const std::string* text = object.text()) return static_cast<int64_t>(num_characters(*text));
  if (const Sequence* sequence = object.sequence();
      sequence && sequence->kind != SequenceKind::generator)
    return static_cast<int64_t>(sequence->items.size());
  if (const Mapping* dict = object.dict()) return static_cast<int64_t>(dict->items.size());
  if (const Loop* loop = object.loop()) return static_cast<int64_t>(loop->items.size());
  raise("object of type '" + type_name(object) + "' has no len()");
}

Object int_of(const Object& number) {
  if (number.is_integer()) return number.integer();
  const double value = std::trunc(number.number());
  if (!(std::fabs(value) < 9.2e18)) raise_overflow();
  return static_cast<int64_t>(value);
}

std::optional<Object> parsed_int(std::string_view text, int64_t base) {
  text = strip(text);
  std::string digits;
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  if (base == 8 && (text.starts_with("0o") || text.starts_with("0O"))) text.remove_prefix(2);
  if (base == 2 && (text.starts_with("0b") || text.starts_with("0B"))) text.remove_prefix(2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      digits += text[i];
    else if (i == 0 || i + 1 == text.size() || text[i + 1] == '_')
      return std::nullopt;
  }
  if (base < 2 || base > 36) return std::nullopt;
  if (digits.empty() || digits[0] == '-' || digits[0] == '+') return std::nullopt;
  if (is_negative) digits.insert(0, "-");
  int64_t value = 0;
  const auto end =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (end.ptr != digits.data() + digits.size()) return std::nullopt;
  if (end.ec == std::errc::result_out_of_range) raise_overflow();
  if (end.ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> parsed_float(std::string_view text) {
  text = strip(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_number = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (text[i] != '_')
      digits += text[i];
    else if (i == 0 || !is_number(i - 1) || !is_number(i + 1))
      return std::nullopt;
  }
  const std::string bare = lower(digits.starts_with('-') ? digits.substr(1) : digits);
  const bool has_letters = bare.find_first_of("abcdfghijklmnopqrstuvwxyz") != bare.npos;
  if (has_letters && bare != "inf" && bare != "infinity" && bare != "nan") return std::nullopt;
  double value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end.ptr != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (end.ec == std::errc::result_out_of_range)
    value = std::strtod(digits.c_str(), nullptr);
  else if (end.ec != std::errc())
    return std::nullopt;
  return value;
}

}  // namespace titan::jinja
