// Registers the dataset `text_folder`.
#include <titan/plugin.h>

#include "text_folder_dataset.h"

using titan::datasets::InvalidUtf8;
using titan::datasets::TextFolderDataset;
using titan::datasets::TextFolderOptions;

TITAN_PLUGIN(plugin) {
  plugin.add<TextFolderDataset>("text_folder", "Every text file below a folder is one document.")
      .option("suffixes", &TextFolderOptions::suffixes, "Suffixes of the names of files to read")
      .option("invalid_utf8", &TextFolderOptions::invalid_utf8,
              "What to do with bytes that are not UTF-8: stop, or replace them by U+FFFD",
              {{"refuse", InvalidUtf8::refuse}, {"replace", InvalidUtf8::replace}});
}
