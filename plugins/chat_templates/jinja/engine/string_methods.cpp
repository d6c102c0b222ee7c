#include "string_methods.h"

#include <algorithm>
#include <map>

#include "bound_arguments.h"
#include "characters.h"
#include "operations.h"
#include "python_text.h"
#include "string_parts.h"

namespace titan::jinja {
namespace {

constexpr int64_t kWidest = 1'000'000;

Object stripped(const Object& self, const BoundArguments& arguments, Sides sides) {
  if (!arguments.has(0) || arguments[0].is_none()) return std::string(strip(*self.text(), sides));
  return std::string(strip(*self.text(), arguments.text(0), sides));
}

/// startswith and endswith also accept a tuple.
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

/// Whether the text is not empty and all its characters satisfy `is_one`.
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

/// In characters; -1: not found.
int64_t found_at(const Object& self, const BoundArguments& arguments, bool is_last) {
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
  std::vector<std::string_view> names;
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

const std::map<std::string_view, StringMethod>& methods() {
  using O = const Object&;
  using A = const BoundArguments&;
  static const std::map<std::string_view, StringMethod> all = {
      {"strip", {{"chars"}, 0, [](O self, A a) -> Object { return stripped(self, a, {}); }}},
      {"lstrip",
       {{"chars"}, 0, [](O self, A a) -> Object { return stripped(self, a, {.right = false}); }}},
      {"rstrip",
       {{"chars"}, 0, [](O self, A a) -> Object { return stripped(self, a, {.left = false}); }}},
      {"lower", {{}, 0, [](O self, A) -> Object { return lower(*self.text()); }}},
      {"casefold", {{}, 0, [](O self, A) -> Object { return lower(*self.text()); }}},
      {"upper", {{}, 0, [](O self, A) -> Object { return upper(*self.text()); }}},
      {"title", {{}, 0, [](O self, A) -> Object { return title_of(*self.text()); }}},
      {"capitalize", {{}, 0, [](O self, A) -> Object { return capitalize(*self.text()); }}},
      {"split",
       {{"sep", "maxsplit"},
        0,
        [](O self, A a) -> Object {
          const int64_t most = a.integer(1, -1);
          return Object::sequence(a.has(0) && !a[0].is_none()
                                      ? split_at(*self.text(), a.text(0), most)
                                      : split_at_space(*self.text(), most));
        }}},
      {"rsplit",
       {{"sep", "maxsplit"},
        0,
        [](O self, A a) -> Object {
          const int64_t most = a.integer(1, -1);
          return Object::sequence(a.has(0) && !a[0].is_none()
                                      ? split_at_last(*self.text(), a.text(0), most)
                                      : split_at_last_space(*self.text(), most));
        }}},
      {"splitlines",
       {{"keepends"},
        0,
        [](O self, A a) -> Object {
          if (a.boolean(0, false)) raise("splitlines(keepends=True) is not supported here");
          std::vector<Object> lines;
          for (const std::string_view line : split_lines(*self.text()))
            lines.emplace_back(std::string(line));
          return Object::sequence(std::move(lines));
        }}},
      {"startswith",
       {{"prefix", "start", "end"},
        1,
        [](O self, A a) -> Object {
          const Object part = slice_of(self, a[1], a[2], {});
          return any_of(
              a, [&](const std::string& prefix) { return part.text()->starts_with(prefix); });
        }}},
      {"endswith",
       {{"suffix", "start", "end"},
        1,
        [](O self, A a) -> Object {
          const Object part = slice_of(self, a[1], a[2], {});
          return any_of(a,
                        [&](const std::string& suffix) { return part.text()->ends_with(suffix); });
        }}},
      {"removeprefix",
       {{"prefix"},
        1,
        [](O self, A a) -> Object {
          const std::string& prefix = a.text(0);
          return self.text()->starts_with(prefix) ? self.text()->substr(prefix.size())
                                                  : *self.text();
        }}},
      {"removesuffix",
       {{"suffix"},
        1,
        [](O self, A a) -> Object {
          const std::string& suffix = a.text(0);
          return self.text()->ends_with(suffix)
                     ? self.text()->substr(0, self.text()->size() - suffix.size())
                     : *self.text();
        }}},
      {"replace",
       {{"old", "new", "count"},
        2,
        [](O self, A a) -> Object {
          return replaced(*self.text(), a.text(0), a.text(1), a.integer(2, -1));
        }}},
      {"join",
       {{"iterable"},
        1,
        [](O self, A a) -> Object {
          std::string result;
          bool is_first = true;
          for (const Object& item : items_of(a[0])) {
            if (!item.is_text())
              raise("sequence item: expected str instance, " + type_name(item) + " found");
            if (!std::exchange(is_first, false)) result += *self.text();
            result += *item.text();
          }
          return result;
        }}},
      {"find",
       {{"sub", "start", "end"},
        1,
        [](O self, A a) -> Object { return found_at(self, a, false); }}},
      {"rfind",
       {{"sub", "start", "end"}, 1, [](O self, A a) -> Object { return found_at(self, a, true); }}},
      {"index",
       {{"sub", "start", "end"},
        1,
        [](O self, A a) -> Object {
          const int64_t at = found_at(self, a, false);
          if (at < 0) raise("substring not found");
          return at;
        }}},
      {"count",
       {{"sub"},
        1,
        [](O self, A a) -> Object {
          const std::string& sub = a.text(0);
          if (sub.empty()) return length_of(self) + 1;
          int64_t count = 0;
          for (size_t at = 0; (at = self.text()->find(sub, at)) != std::string::npos;
               at += sub.size())
            ++count;
          return count;
        }}},
      {"partition",
       {{"sep"}, 1, [](O self, A a) -> Object { return partitioned(self, a, false); }}},
      {"rpartition",
       {{"sep"}, 1, [](O self, A a) -> Object { return partitioned(self, a, true); }}},
      {"center",
       {{"width", "fillchar"},
        1,
        [](O self, A a) -> Object {
          return centered(*self.text(), a.integer(0, 0), a.has(1) ? a.text(1) : " ");
        }}},
      {"ljust",
       {{"width", "fillchar"}, 1, [](O self, A a) -> Object { return adjusted(self, a, true); }}},
      {"rjust",
       {{"width", "fillchar"}, 1, [](O self, A a) -> Object { return adjusted(self, a, false); }}},
      {"zfill",
       {{"width"},
        1,
        [](O self, A a) -> Object {
          const bool has_sign = self.text()->starts_with('-') || self.text()->starts_with('+');
          std::string zeros;
          for (int64_t i = length_of(self); i < std::min(a.integer(0, 0), kWidest); ++i)
            zeros += '0';
          return has_sign ? self.text()->substr(0, 1) + zeros + self.text()->substr(1)
                          : zeros + *self.text();
        }}},
      {"isdigit", {{}, 0, [](O self, A) -> Object { return all_are(self, is_digit); }}},
      {"isdecimal", {{}, 0, [](O self, A) -> Object { return all_are(self, is_digit); }}},
      {"isnumeric", {{}, 0, [](O self, A) -> Object { return all_are(self, is_digit); }}},
      {"isspace", {{}, 0, [](O self, A) -> Object { return all_are(self, is_space); }}},
      {"isalpha", {{}, 0, [](O self, A) -> Object { return all_are(self, is_letter); }}},
      {"isalnum",
       {{},
        0,
        [](O self, A) -> Object {
          return all_are(self, [](char32_t c) { return c != '_' && is_word(c); });
        }}},
      {"isascii",
       {{},
        0,
        [](O self, A) -> Object {
          return self.text()->empty() || all_are(self, [](char32_t c) { return c < 0x80; });
        }}},
      {"islower",
       {{}, 0, [](O self, A) -> Object { return has_only_case(self, LetterCase::lower); }}},
      {"isupper",
       {{}, 0, [](O self, A) -> Object { return has_only_case(self, LetterCase::upper); }}},
  };
  return all;
}

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

}  // namespace titan::jinja
