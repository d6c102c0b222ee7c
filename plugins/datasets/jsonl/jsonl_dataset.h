// Dataset `jsonl`: text documents, one JSON object per line.
#pragma once

#include <titan/dataset.h>

#include "plugins/datasets/common/json_lines.h"

namespace titan::datasets {

/// The files of [training] dataset_path: a file, a folder's *.jsonl and *.json (also .gz, .zst) or
/// a glob. See JsonLines for how they are read.
class JsonlDataset final : public JsonLines {
 public:
  JsonlDataset(const JsonLinesOptions& options, DatasetContext context)
      : JsonLines(options, context.path, find_source_files(context.path, json_lines_suffixes())) {}
};

}  // namespace titan::datasets
