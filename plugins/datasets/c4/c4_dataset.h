// Datasets `c4`, `c4_validation` and `c4_test`, as torchtitan names them.
#pragma once

#include <titan/dataset.h>

#include "plugins/datasets/common/json_lines.h"

namespace titan::datasets {

/// Shards of allenai/c4 (config `en`) as on the Hugging Face hub: c4-train.*.json.gz in the path or
/// in its folder `en`, else any JSON lines there. A file or glob is used unchanged. Without a path
/// throws an Error that says how to get the data.
class C4Dataset final : public JsonLines {
 public:
  C4Dataset(const JsonLinesOptions& options, DatasetContext context);
};

/// The same for c4-validation.*.json.gz.
class C4ValidationDataset final : public JsonLines {
 public:
  C4ValidationDataset(const JsonLinesOptions& options, DatasetContext context);
};

/// A small sample of English text. Without a path: tests/assets/corpus/train.jsonl of Titan's
/// source tree, relative to the working directory.
class C4TestDataset final : public JsonLines {
 public:
  C4TestDataset(const JsonLinesOptions& options, DatasetContext context);
};

}  // namespace titan::datasets
