// Dataset `megatron`: token ids in pairs of <prefix>.bin and <prefix>.idx, as `titan tokenize` and
// Megatron-LM's tools write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dataset.h>

#include "plugins/datasets/common/open_files.h"
#include "plugins/datasets/megatron/megatron_index.h"
#include "plugins/datasets/tokens/token_file.h"

namespace titan::datasets {

/// A document is the concatenation of its sequences. The path is a prefix, one of its two files, a
/// folder (all *.idx in it) or a pattern of prefixes.
class MegatronDataset final : public IndexedDataset {
 public:
  /// Reads and checks every index. Throws an Error naming the file and the byte.
  explicit MegatronDataset(DatasetContext context);

  int64_t size() const override { return num_documents_; }
  void read(int64_t index, Document& document) const override;
  /// "web.bin: document 17", counted from 0 in the file.
  std::string place(int64_t index) const override;
  /// Hash of the pairs' names, types, sizes and counts.
  std::string fingerprint() const override;

 private:
  struct Pair {
    std::string name;  // "web.bin"
    MegatronIndex index;
    TokenLayout layout;
    int64_t first_document = 0;
  };

  const Pair& pair_of(int64_t index) const;

  OpenFiles inputs_;         // .idx and .bin of each pair: 2 i and 2 i + 1
  std::vector<Pair> pairs_;  // read through inputs_
  int64_t num_documents_ = 0;
};

}  // namespace titan::datasets
