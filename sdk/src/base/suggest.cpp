#include <titan/suggest.h>

#include <algorithm>
#include <cctype>

namespace titan {
namespace {

char folded(char c) {
  return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool begins(std::string_view word, std::string_view candidate) {
  return word.size() >= 3 && candidate.size() > word.size() &&
         std::equal(word.begin(), word.end(), candidate.begin(),
                    [](char a, char b) { return folded(a) == folded(b); });
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: three rows of the table are enough.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
          folded(a[i - 2]) == folded(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 200;  // longer words are not misspelt names
  if (word.empty() || word.size() > kLongestName) return std::nullopt;
  const std::string* best = nullptr;
  int best_distance = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(word, candidate);
    if (distance < best_distance) best = &candidate, best_distance = distance;
  }
  if (!best)
    for (const std::string& candidate : candidates)
      if (begins(word, candidate) && (!best || candidate.size() < best->size())) best = &candidate;
  return best ? std::optional(*best) : std::nullopt;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto name = nearest(word, candidates);
  return name ? "did you mean '" + *name + "'?" : "";
}

}  // namespace titan
