// Registers the dataset `jsonl`.
#include <titan/plugin.h>

#include "jsonl_dataset.h"

using titan::datasets::JsonlDataset;
using titan::datasets::JsonLinesOptions;

TITAN_PLUGIN(plugin) {
  plugin.add<JsonlDataset>("jsonl", "Text documents from files with one JSON object a line.")
      .option("field", &JsonLinesOptions::field, "Member of the object that holds the text")
      .option("index", &JsonLinesOptions::index,
              "Read plain files once at the start to find their lines: any order of documents; off "
              "for very large ones. Compressed files are never indexed")
      .option("skip_bad_lines", &JsonLinesOptions::skip_bad_lines,
              "Pass over lines that are no document, with a warning, instead of stopping");
}
