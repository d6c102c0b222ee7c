// The source of a setting: a range in a TOML file or on the command line. Used by every diagnostic,
// and by messages that name the line that selected a component.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

/// The text to which source ranges refer.
struct SourceText {
  std::string name;  ///< the file as the user spelled it, or "command line"
  std::vector<std::string>
      lines;  ///< without line ends; of the command line: the one argument concerned
  bool is_file = true;
};

/// A range within one line. Without a source it denotes a built-in default.
struct TITAN_API SourceRange {
  std::shared_ptr<const SourceText> source;  ///< shared: one text, a place per key and value
  int line = 0;                              ///< from 1
  int column = 0;                            ///< from 1, in code points
  int length = 0;                            ///< in code points; at least 1 if there is a source

  explicit operator bool() const { return source != nullptr; }
  /// "train.toml:14:8", "command line", or "default"
  std::string to_string() const;
};

/// The unit of columns and lengths: UTF-8 characters, and invalid bytes.
TITAN_API int num_code_points(std::string_view text);

}  // namespace titan
