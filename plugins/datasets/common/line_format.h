// How a data set parses a line of a file. Used by the data sets of JSON lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <titan/dataset.h>

namespace titan::datasets {

struct LineFormat {
  /// [any thread] Parses `line` into `document`, which is an empty text before. Throws a data Error
  /// with the reason, without file or line.
  std::function<void(std::string_view line, Document& document)> parse;
  std::string description;       ///< the format and its options, for fingerprints
  bool skips_bad_lines = false;  ///< skip lines that are not documents, instead of failing
};

}  // namespace titan::datasets
