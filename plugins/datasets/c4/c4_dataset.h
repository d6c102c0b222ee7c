// Datasets `c4`, `c4_validation` and `c4_test`, as torchtitan names them.
#pragma once

#include <titan/dataset.h>

#include "plugins/datasets/common/json_lines.h"

namespace titan::datasets {

/// Shards of allenai/c4 (config `en`) as the hub stores them: the path's c4-train.*.json.gz, or
/// those in its folder `en`; where there are none, any JSON lines there. A file or glob is taken as
/// it is. Without a path: an Error that says how to get the data.
class C4Dataset final : public JsonLines {
 public:
  C4Dataset(const JsonLinesOptions& options, DatasetContext context);
};

/// The same for c4-validation.*.json.gz.
class C4ValidationDataset final : public JsonLines {
 public:
  C4ValidationDataset(const JsonLinesOptions& options, DatasetContext context);
};

/// A small sample of English text. Without a path: the one that comes with Titan's source tree,
/// tests/assets/corpus/train.jsonl below the working directory.
class C4TestDataset final : public JsonLines {
 public:
  C4TestDataset(const JsonLinesOptions& options, DatasetContext context);
};

}  // namespace titan::datasets
