// What a line of a file is to a data set. Used by the data sets of JSON lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <titan/dataset.h>

namespace titan::datasets {

struct LineFormat {
  /// [any thread] Puts what `line` holds into `document`, which is an empty text before. Throws a
  /// data Error that says what is wrong, without naming file or line.
  std::function<void(std::string_view line, Document& document)> parse;
  std::string description;       ///< of the format and what is chosen of it, for fingerprints
  bool skips_bad_lines = false;  ///< pass over what is no document, instead of failing
};

}  // namespace titan::datasets
