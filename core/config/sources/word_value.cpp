#include "core/config/sources/word_value.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <titan/error.h>

namespace titan::core {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view stripped(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// "10_000" as 10000; any other word remains a string, which the check refuses.
template <class Number>
Value number_or_word(std::string_view word) {
  std::string digits;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool separator = word[i] == '_' && i > 0 && i + 1 < word.size() &&
                           is_digit(word[i - 1]) && is_digit(word[i + 1]);
    if (!separator) digits += word[i];
  }
  const bool plus = digits.size() > 1 && digits[0] == '+' && digits[1] != '-';
  Number number{};
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data() + (plus ? 1 : 0), end, number);
  return error == std::errc() && rest == end ? Value(number) : Value(word);
}

}  // namespace

Value bracketed_list(std::string_view word) {
  if (!stripped(word).starts_with('[')) return {};
  try {
    return parse_json(word);
  } catch (const Error&) {
    return {};  // an item may begin with a bracket
  }
}

Value value_of_word(const Option& option, std::string_view word) {
  if (option.means_unset(word)) return {};
  switch (option.type) {
    case OptionType::integer:
      return number_or_word<int64_t>(word);
    case OptionType::number:
      return number_or_word<double>(word);
    case OptionType::boolean:
      if (word == "true" || word == "True") return true;
      if (word == "false" || word == "False") return false;
      return word;
    case OptionType::list: {
      if (Value list = bracketed_list(word); list.is_list()) return list;
      Value::List items;
      while (!word.empty()) {
        const size_t comma = std::min(word.find(','), word.size());
        items.push_back(value_of_word(*option.element, stripped(word.substr(0, comma))));
        word.remove_prefix(std::min(comma + 1, word.size()));
      }
      return items;
    }
    default:
      return word;
  }
}

}  // namespace titan::core
