// "did you mean ...?": finds the known name nearest to a misspelt one. Used in error messages about
// names that people type.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

/// Number of insertions, deletions, replacements and swaps of neighbouring characters between two
/// words. Case does not count, and '-' equals '_'.
TITAN_API int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, if near enough: a third of the letters may differ, or `word` is
/// a prefix of the candidate.
TITAN_API std::optional<std::string> nearest(std::string_view word,
                                             const std::vector<std::string>& candidates);

/// "did you mean 'steps'?", or empty.
TITAN_API std::string did_you_mean(std::string_view word,
                                   const std::vector<std::string>& candidates);

}  // namespace titan
