// Opens the readers of one source for the rows of the global batch. The order of documents is a
// function of (seed, row, number of rows) alone, so it does not depend on the number of ranks. Used
// by the window feed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <titan/dataset.h>

#include "core/data/order/source_reader.h"

namespace titan::core {

/// How documents are ordered.
struct OrderOptions {
  bool shuffle = false;
  int64_t shuffle_buffer = 1000;  ///< documents of a row per shuffled block, for streamed sources
  /// If rows share shards: the size of the blocks of all rows together. Each row's block gets an
  /// equal share, so the pass that fills one fills all of them.
  size_t max_shared_block_bytes = size_t{128} << 20;
  uint64_t seed = 0;
  bool once = false;  ///< ends after the first epoch
};

/// Opens the readers of one source in this process. Rows of a streamed source that has fewer shards
/// than there are rows share one pass over the data.
class SourceAccess {
 public:
  virtual ~SourceAccess();
  /// `row` in [0, num_rows). All readers are opened before the first one reads.
  virtual std::unique_ptr<SourceReader> open(int64_t row) = 0;
};

/// Indexed: document g of the endless sequence of (shuffled) epochs goes to row g mod num_rows.
/// Streamed with at least as many shards as rows: shards are assigned in this way. Streamed with
/// fewer: documents are. In shuffled streams the shards are permuted, and each row's documents of
/// an epoch are shuffled in blocks of `shuffle_buffer`. `dataset` outlives the access, the access
/// its readers.
std::unique_ptr<SourceAccess> access_source(const std::string& name, const Dataset& dataset,
                                            int64_t num_rows, const OrderOptions& options);

}  // namespace titan::core
