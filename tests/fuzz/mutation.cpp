#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace titan::fuzz {
namespace {

constexpr size_t kMaxBytes = 1 << 16;

const char* const kNumbers[] = {"0",
                                "1",
                                "2",
                                "3",
                                "4",
                                "8",
                                "12",
                                "-1",
                                "-0",
                                "1.5",
                                "1e308",
                                "1e309",
                                "1E2",
                                "2147483648",
                                "4294967296",
                                "4611686018427387904",
                                "9223372036854775807",
                                "9223372036854775808",
                                "-9223372036854775808",
                                "18446744073709551615",
                                "18446744073709551616",
                                "00",
                                "0x10"};

const char* const kWords[] = {"null",
                              "true",
                              "[]",
                              "{}",
                              "\"\"",
                              ",",
                              ":",
                              "\"F32\"",
                              "\"BF16\"",
                              "\"F4\"",
                              "\"C64\"",
                              "\"shape\"",
                              "\"w\"",
                              "\\ud800",
                              "\\u0000",
                              "\xff\xfe",
                              "\xef\xbb\xbf",
                              "\"\\\"",
                              "\"F6_E2M3\"",
                              "\"dtype\":",
                              "[[[[[[",
                              "}}",
                              "]]",
                              "\"__metadata__\":",
                              "\"data_offsets\":",
                              "\"saved_offsets\":",
                              "\\\"saved_offsets\\\": [0]"};

size_t below(size_t limit, Random& random) {
  return limit == 0 ? 0 : std::uniform_int_distribution<size_t>(0, limit - 1)(random);
}

template <class Item, size_t size>
const Item& one_of(const Item (&items)[size], Random& random) {
  return items[below(size, random)];
}

/// Bytes of the JSON string, list or object that starts at `start`, with its end.
size_t piece_length(std::string_view text, size_t start) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '{' || c == '['))
      ++depth;
    else if (!in_string && (c == '}' || c == ']'))
      --depth;
    if (depth <= 0 && !in_string) return i + 1 - start;
  }
  return text.size() - start;
}

/// A JSON string, list, object or run of digits that starts at a random place.
std::pair<size_t, size_t> random_piece(std::string_view text, Random& random) {
  constexpr const char* kDigits = "0123456789";
  const size_t start = text.find_first_of("{[\"0123456789", below(text.size(), random));
  if (start == std::string_view::npos) return {0, 0};
  if (text.find_first_of(kDigits, start) != start) return {start, piece_length(text, start)};
  const size_t before = text.find_last_not_of(kDigits, start);
  const size_t first = before == std::string_view::npos ? 0 : before + 1;
  return {first, std::min(text.find_first_not_of(kDigits, start), text.size()) - first};
}

/// A member of an object: its name, its value and the comma after it.
std::pair<size_t, size_t> random_member(std::string_view text, Random& random) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    const size_t start = text.find('"', below(text.size(), random));
    if (start == std::string_view::npos) continue;
    size_t end = start + piece_length(text, start);
    if (end >= text.size() || text[end] != ':') continue;
    end = text.find_first_not_of(": \n", end);
    if (end == std::string_view::npos) continue;
    end += piece_length(text, end);
    end = std::min(text.find_first_of(",}", end), text.size());
    if (end < text.size() && text[end] == ',') ++end;
    return {start, end - start};
  }
  return {0, 0};
}

void change_number(std::string& text, Random& random) {
  constexpr const char* kDigits = "0123456789";
  const size_t digit = text.find_first_of(kDigits, below(text.size(), random));
  if (digit == std::string::npos) return;
  const size_t before = text.find_last_not_of(kDigits, digit);
  const size_t start = before == std::string::npos ? 0 : before + 1;
  const size_t end = std::min(text.find_first_not_of(kDigits, digit), text.size());
  text.replace(start, end - start, one_of(kNumbers, random));
}

void change(std::string& text, const std::vector<std::string>& others, Random& random) {
  const auto [start, length] = random_piece(text, random);
  switch (below(14, random)) {
    case 0:
      if (!text.empty())
        text[below(text.size(), random)] ^= static_cast<char>(1 << below(8, random));
      break;
    case 1:
      if (!text.empty()) text[below(text.size(), random)] = static_cast<char>(below(256, random));
      break;
    case 2:
      text.resize(below(text.size() + 1, random));
      break;
    case 3:
      text.erase(start, length);
      break;
    case 4: {  // repeats a piece and the text up to the next piece
      const size_t end =
          std::min(text.find_first_of("\"{[0123456789", start + length), text.size());
      text.insert(start, text.substr(start, end - start));
      break;
    }
    case 5:
      text.replace(start, length, one_of(kWords, random));
      break;
    case 6:
      text.insert(below(text.size() + 1, random), one_of(kWords, random));
      break;
    case 7: {  // replaces a piece by one of this or another input
      const std::string other = below(2, random) == 0 ? text : others[below(others.size(), random)];
      const auto [from, count] = random_piece(other, random);
      text.replace(start, length, other.substr(from, count));
      break;
    }
    case 8: {  // joins the front of one input and the end of another
      const std::string& other = others[below(others.size(), random)];
      text = text.substr(0, below(text.size() + 1, random)) +
             other.substr(below(other.size() + 1, random));
      break;
    }
    case 9: {
      const auto [from, count] = random_member(text, random);
      text.erase(from, count);
      break;
    }
    case 10: {  // moves a member to the place of another
      const auto [from, count] = random_member(text, random);
      const std::string member = text.substr(from, count);
      if (below(2, random) == 0) text.erase(from, count);
      text.insert(random_member(text, random).first, member);
      break;
    }
    default:
      change_number(text, random);
  }
}

}  // namespace

std::string mutated(const std::string& input, const std::vector<std::string>& others,
                    Random& random) {
  std::string text = input;
  const size_t num_changes = 1 + below(6, random);
  for (size_t i = 0; i < num_changes; ++i) {
    change(text, others, random);
    if (text.size() > kMaxBytes) text.resize(kMaxBytes);
  }
  return text;
}

}  // namespace titan::fuzz
