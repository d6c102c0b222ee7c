// Name patterns, by which configurations select several parameters at once. Used by the core's
// parameter groups and by optimizers that treat some weights differently.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

/// Whether `pattern` matches the whole of `name`; '*' matches any text, including none.
inline bool matches_pattern(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (size_t skipped = 0; skipped <= name.size(); ++skipped)
    if (matches_pattern(name.substr(skipped), pattern)) return true;
  return false;
}

inline bool matches_any(std::string_view name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(name, pattern); });
}

}  // namespace titan
