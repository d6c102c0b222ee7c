// Registers the dataset `jsonl`.
#include <titan/plugin.h>

#include "jsonl_dataset.h"

using titan::datasets::JsonlDataset;
using titan::datasets::JsonLinesOptions;

TITAN_PLUGIN(plugin) {
  plugin.add<JsonlDataset>("jsonl", "Text documents from files with one JSON object a line.")
      .option("field", &JsonLinesOptions::field, "Member of the object that holds the text")
      .option("index", &JsonLinesOptions::index,
              "Index plain files at the start, which allows any order of documents; switch off for "
              "very large files. Compressed files are never indexed")
      .option("skip_bad_lines", &JsonLinesOptions::skip_bad_lines,
              "Skip invalid lines with a warning instead of stopping");
}
