// Formats columns of text for the commands that show plugins, checkpoints and estimates.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <titan/shown_text.h>

namespace titan {

using TextRow = std::vector<std::string>;

/// One line per row, starting with `indent`. Columns are as wide as their widest cell and two
/// blanks apart; lines have no trailing blanks. Line ends within a cell are escaped.
inline std::string text_table(std::vector<TextRow> rows, const std::string& indent = "") {
  std::vector<size_t> widths;
  for (TextRow& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      row[i] = printable(row[i], row[i].size());
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  std::string text;
  for (const TextRow& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - columns_of(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace titan
