// Breaks text between words. Used by help texts and `titan list`.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <titan/shown_text.h>

namespace titan::core {

/// Lines of at most `width` columns; a longer word has a line of its own. At least one line.
inline std::vector<std::string> wrap_text(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (columns_of(line) + 1 + columns_of(word) <= width)
      line += " " + word;
    else
      lines.push_back(word);
    begin = end + 1;
  }
  return lines;
}

}  // namespace titan::core
