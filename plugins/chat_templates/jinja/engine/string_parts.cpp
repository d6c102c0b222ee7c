#include "string_parts.h"

#include <algorithm>

#include "characters.h"
#include "operations.h"

namespace titan::jinja {
namespace {

constexpr int64_t kWidestCentered = 1'000'000;

}  // namespace

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
  width = std::min(width, kWidestCentered);
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
