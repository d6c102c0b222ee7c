// Options of the data sets of JSON lines (`jsonl`, `c4`).
#pragma once

#include <string>

namespace titan::datasets {

struct JsonLinesOptions {
  std::string field = "text";   ///< member of the object that holds the text
  bool index = true;            ///< index the lines of plain files at the start
  bool skip_bad_lines = false;  ///< skip lines that are not documents, instead of failing
};

}  // namespace titan::datasets
