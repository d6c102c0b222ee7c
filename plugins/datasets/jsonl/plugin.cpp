// Registers the dataset `jsonl`.
#include <titan/plugin.h>

#include "jsonl_dataset.h"

using titan::datasets::JsonlDataset;
using titan::datasets::JsonlOptions;

TITAN_PLUGIN(plugin) {
  plugin.add<JsonlDataset>("jsonl", "Text documents from files with one JSON object a line.")
      .option("field", &JsonlOptions::field, "Member of the object that holds the text");
}
