#include "string_methods.h"

#include <algorithm>
#include <map>

#include "bound_arguments.h"
#include "characters.h"
#include "operations.h"
#include "python_text.h"

namespace titan::jinja {
namespace {

using Names = std::vector<std::string_view>;
constexpr int64_t kWidest = 1'000'000;

std::vector<Object> split_at(std::string_view text, std::string_view separator, int64_t most) {
  if (separator.empty()) raise("empty separator");
  std::vector<Object> parts;
  while (most != 0) {
    const size_t at = text.find(separator);
    if (at == text.npos) break;
    parts.emplace_back(std::string(text.substr(0, at)));
    text.remove_prefix(at + separator.size());
    --most;
  }
  parts.emplace_back(std::string(text));
  return parts;
}

std::vector<Object> split_at_last(std::string_view text, std::string_view separator, int64_t most) {
  if (separator.empty()) raise("empty separator");
  std::vector<Object> parts;
  while (most != 0) {
    const size_t at = text.rfind(separator);
    if (at == text.npos) break;
    parts.emplace_back(std::string(text.substr(at + separator.size())));
    text = text.substr(0, at);
    --most;
  }
  parts.emplace_back(std::string(text));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Object> split_at_space(std::string_view text, int64_t most) {
  std::vector<Object> parts;
  text = strip(text, {.right = false});
  while (!text.empty()) {
    if (most == 0) {
      parts.emplace_back(std::string(text));
      break;
    }
    size_t end = 0;
    while (end < text.size() && !is_space(character_at(text, end).value))
      end += character_at(text, end).length;
    parts.emplace_back(std::string(text.substr(0, end)));
    text = strip(text.substr(end), {.right = false});
    --most;
  }
  return parts;
}

std::vector<Object> split_at_last_space(std::string_view text, int64_t most) {
  if (most < 0) return split_at_space(text, most);
  std::vector<Object> parts;
  text = strip(text, {.left = false});
  while (!text.empty()) {
    if (most-- == 0) {
      parts.emplace_back(std::string(text));
      break;
    }
    const std::vector<size_t> starts = character_starts(text);
    size_t begin = starts.size() - 1;
    while (begin > 0 && !is_space(character_at(text, starts[begin - 1]).value)) --begin;
    parts.emplace_back(std::string(text.substr(starts[begin])));
    text = strip(text.substr(0, starts[begin]), {.left = false});
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Object stripped(const Object& self, const BoundArguments& arguments, Sides sides) {
  if (!arguments.has(0) || arguments[0].is_none()) return std::string(strip(*self.text(), sides));
  return std::string(strip(*self.text(), arguments.text(0), sides));
}

/// startswith and endswith take a tuple too.
template <class Matches>
Object any_of(const BoundArguments& arguments, Matches matches) {
  const Sequence* several = arguments[0].sequence();
  if (!several || several->kind != SequenceKind::tuple) return bool(matches(arguments.text(0)));
  for (const Object& one : several->items) {
    if (!one.is_text()) raise("tuple for startswith must only contain str, not " + type_name(one));
    if (matches(*one.text())) return true;
  }
  return false;
}

/// Every character is one of `is_one`, and there is one.
template <class IsOne>
bool all_are(const Object& self, IsOne is_one) {
  const std::string& text = *self.text();
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (!is_one(c.value)) return false;
    i += c.length;
  }
  return !text.empty();
}

bool has_only_case(const Object& self, LetterCase wanted) {
  bool has_any = false;
  const std::string& text = *self.text();
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    i += c.length;
    const LetterCase found = case_of(c.value);
    if (found != LetterCase::none && found != wanted) return false;
    has_any = has_any || found == wanted;
  }
  return has_any;
}

/// In characters; -1: not there.
int64_t found_at(const Object& self, const BoundArguments& arguments, bool is_last) {
  const std::string& text = *self.text();
  const Object part = slice_of(self, arguments[1], arguments[2], {});
  const size_t at =
      is_last ? part.text()->rfind(arguments.text(0)) : part.text()->find(arguments.text(0));
  if (at == std::string::npos) return -1;
  int64_t begin = arguments.integer(1, 0);
  if (begin < 0) begin = std::max<int64_t>(0, begin + length_of(self));
  return begin + static_cast<int64_t>(num_characters(std::string_view(*part.text()).substr(0, at)));
}

Object partitioned(const Object& self, const BoundArguments& arguments, bool is_last) {
  const std::string &text = *self.text(), &separator = arguments.text(0);
  if (separator.empty()) raise("empty separator");
  const size_t at = is_last ? text.rfind(separator) : text.find(separator);
  if (at == text.npos)
    return is_last ? Object::tuple({"", "", text}) : Object::tuple({text, "", ""});
  return Object::tuple({text.substr(0, at), separator, text.substr(at + separator.size())});
}

std::string title_of(std::string_view text) {
  std::string result;
  bool is_inside = false;
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    const std::string_view one = text.substr(i, c.length);
    result += is_inside ? lower(one) : capitalize(one);
    is_inside = is_letter(c.value);
    i += c.length;
  }
  return result;
}

struct StringMethod {
  Names names;
  size_t num_required;
  Object (*call)(const Object& self, const BoundArguments& arguments);
};

Object adjusted(const Object& self, const BoundArguments& arguments, bool is_left) {
  const int64_t width = std::min(arguments.integer(0, 0), kWidest);
  const std::string fill = arguments.has(1) ? arguments.text(1) : " ";
  std::string pad;
  for (int64_t i = length_of(self); i < width; ++i) pad += fill;
  return is_left ? *self.text() + pad : pad + *self.text();
}

#define TITAN_METHOD(name, required, body, ...)                                            \
  {                                                                                        \
    name, {                                                                                \
      {__VA_ARGS__}, required, [](const Object& self, const BoundArguments& a) -> Object { \
        (void)a;                                                                           \
        body                                                                               \
      }                                                                                    \
    }                                                                                      \
  }

const std::map<std::string_view, StringMethod>& methods() {
  static const std::map<std::string_view, StringMethod> all = {
    TITAN_METHOD("strip", 0, return stripped(self, a, {});, "chars"),
    TITAN_METHOD("lstrip", 0, return stripped(self, a, {.right = false});, "chars"),
    TITAN_METHOD("rstrip", 0, return stripped(self, a, {.left = false});, "chars"),
    TITAN_METHOD("lower", 0, return lower(*self.text());),
    TITAN_METHOD("casefold", 0, return lower(*self.text());),
    TITAN_METHOD("upper", 0, return upper(*self.text());),
    TITAN_METHOD("title", 0, return title_of(*self.text());),
    TITAN_METHOD("capitalize", 0, return capitalize(*self.text());),
    TITAN_METHOD(
        "split", 0,
        {
          const int64_t most = a.integer(1, -1);
          return Object::sequence(a.has(0) && !a[0].is_none()
                                      ? split_at(*self.text(), a.text(0), most)
                                      : split_at_space(*self.text(), most));
        },
        "sep", "maxsplit"),
    TITAN_METHOD(
        "rsplit", 0,
        {
          const int64_t most = a.integer(1, -1);
          return Object::sequence(a.has(0) && !a[0].is_none()
                                      ? split_at_last(*self.text(), a.text(0), most)
                                      : split_at_last_space(*self.text(), most));
        },
        "sep", "maxsplit"),
    TITAN_METHOD(
        "splitlines", 0,
        {
          if (a.boolean(0, false)) raise("splitlines(keepends=True) is not supported here");
          std::vector<Object> lines;
          for (const std::string_view line : split_lines(*self.text()))
            lines.emplace_back(std::string(line));
          return Object::sequence(std::move(lines));
        },
        "keepends"),
    TITAN_METHOD(
        "startswith", 1,
        {
          const Object part = slice_of(self, a[1], a[2], {});
          return any_of(
              a, [&](const std::string& prefix) { return part.text()->starts_with(prefix); });
        },
        "prefix", "start", "end"),
    TITAN_METHOD(
        "endswith", 1,
        {
          const Object part = slice_of(self, a[1], a[2], {});
          return any_of(a,
                        [&](const std::string& suffix) { return part.text()->ends_with(suffix); });
        },
        "suffix", "start", "end"),
    TITAN_METHOD(
        "removeprefix", 1,
        {
          const std::string& prefix = a.text(0);
          return self.text()->starts_with(prefix) ? self.text()->substr(prefix.size())
                                                  : *self.text();
        },
        "prefix"),
    TITAN_METHOD(
        "removesuffix", 1,
        {
          const std::string& suffix = a.text(0);
          return self.text()->ends_with(suffix)
                     ? self.text()->substr(0, self.text()->size() - suffix.size())
                     : *self.text();
        },
        "suffix"),
    TITAN_METHOD("replace", 2,
                 return replaced(*self.text(), a.text(0), a.text(1), a.integer(2, -1));
                 , "old", "new", "count"),
    TITAN_METHOD(
        "join", 1,
        {
          std::string result;
          bool is_first = true;
          for (const Object& item : items_of(a[0])) {
            if (!item.is_text())
              raise("sequence item: expected str instance, " + type_name(item) + " found");
            if (!std::exchange(is_first, false)) result += *self.text();
            result += *item.text();
          }
          return result;
        },
        "iterable"),
    TITAN_METHOD("find", 1, return found_at(self, a, false);, "sub", "start", "end"),
    TITAN_METHOD("rfind", 1, return found_at(self, a, true);, "sub", "start", "end"),
    TITAN_METHOD(
        "index", 1,
        {
          const int64_t at = found_at(self, a, false);
          if (at < 0) raise("substring not found");
          return at;
        },
        "sub", "start", "end"),
    TITAN_METHOD(
        "count", 1,
        {
          const std::string& sub = a.text(0);
          if (sub.empty()) return length_of(self) + 1;
          int64_t count = 0;
          for (size_t at = 0; (at = self.text()->find(sub, at)) != std::string::npos;
               at += sub.size())
            ++count;
          return count;
        },
        "sub"),
    TITAN_METHOD("partition", 1, return partitioned(self, a, false);, "sep"),
    TITAN_METHOD("rpartition", 1, return partitioned(self, a, true);, "sep"),
    TITAN_METHOD("center", 1,
                 return centered(*self.text(), a.integer(0, 0), a.has(1) ? a.text(1) : " ");
                 , "width", "fillchar"),
    TITAN_METHOD("ljust", 1, return adjusted(self, a, true);, "width", "fillchar"),
    TITAN_METHOD("rjust", 1, return adjusted(self, a, false);, "width", "fillchar"),
    TITAN_METHOD(
        "zfill", 1,
        {
          const bool has_sign = self.text()->starts_with('-') || self.text()->starts_with('+');
          std::string zeros;
          for (int64_t i = length_of(self); i < std::min(a.integer(0, 0), kWidest); ++i)
            zeros += '0';
          return has_sign ? self.text()->substr(0, 1) + zeros + self.text()->substr(1)
                          : zeros + *self.text();
        },
        "width"),
    TITAN_METHOD("isdigit", 0, return all_are(self, is_digit);),
    TITAN_METHOD("isdecimal", 0, return all_are(self, is_digit);),
    TITAN_METHOD("isnumeric", 0, return all_are(self, is_digit);),
    TITAN_METHOD("isspace", 0, return all_are(self, is_space);),
    TITAN_METHOD("isalpha", 0, return all_are(self, is_letter);),
    TITAN_METHOD("isalnum", 0,
                 return all_are(self, [](char32_t c) { return c != '_' && is_word(c); });),
    TITAN_METHOD(
        "isascii", 0,
        return self.text()->empty() || all_are(self, [](char32_t c) { return c < 0x80; });),
    TITAN_METHOD("islower", 0, return has_only_case(self, LetterCase::lower);),
    TITAN_METHOD("isupper", 0, return has_only_case(self, LetterCase::upper);),
  };
  return all;
}

#undef TITAN_METHOD

}  // namespace

std::optional<Object> string_method(const Object& self, std::string_view name) {
  if (name == "format")
    return Object::function("format", [self](Runtime&, Arguments arguments) {
      return Object(format_braces(*self.text(), arguments));
    });
  const auto found = methods().find(name);
  if (found == methods().end()) return std::nullopt;
  return Object::function(std::string(name), [self, &method = found->second, name = found->first](
                                                 Runtime&, Arguments arguments) {
    return method.call(self, BoundArguments(std::string(name), std::move(arguments), method.names,
                                            method.num_required));
  });
}

std::string replaced(std::string_view text, std::string_view old, std::string_view by,
                     int64_t count) {
  std::string result;
  if (old.empty()) {  // between all characters
    for (size_t i = 0; i <= text.size();) {
      if (count-- != 0)
        result += by;
      else {
        result += text.substr(i);
        break;
      }
      if (i == text.size()) break;
      const size_t length = character_at(text, i).length;
      result += text.substr(i, length);
      i += length;
    }
    return result;
  }
  while (count-- != 0) {
    const size_t at = text.find(old);
    if (at == text.npos) break;
    (result += text.substr(0, at)) += by;
    text.remove_prefix(at + old.size());
  }
  return result += text;
}

std::string centered(std::string_view text, int64_t width, std::string_view fill) {
  const auto length = static_cast<int64_t>(num_characters(text));
  width = std::min(width, kWidest);
  if (width <= length) return std::string(text);
  const int64_t missing = width - length;
  const int64_t left = missing / 2 + (missing & width & 1);  // CPython's rule
  std::string result;
  for (int64_t i = 0; i < left; ++i) result += fill;
  result += text;
  for (int64_t i = left; i < missing; ++i) result += fill;
  return result;
}

}  // namespace titan::jinja
