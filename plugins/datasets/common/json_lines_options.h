// What the data sets of JSON lines let their users choose.
#pragma once

#include <string>

namespace titan::datasets {

struct JsonLinesOptions {
  std::string field = "text";   ///< the member that holds the text
  bool index = true;            ///< index the lines of plain files at the start
  bool skip_bad_lines = false;  ///< pass over what is no document, instead of failing
};

}  // namespace titan::datasets
