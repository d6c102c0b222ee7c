// The documents that one row of the global batch reads of one source, epoch after epoch. Which
// document comes when is a function of (seed, row, number of rows) alone, so it does not depend on
// how many ranks there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/dataset.h>

namespace titan::core {

/// How documents are ordered.
struct OrderOptions {
  bool shuffle = false;
  int64_t shuffle_buffer = 1000;  ///< documents of one row that are mixed, for streamed sources
  uint64_t seed = 0;
  bool once = false;  ///< ends after the first epoch
};

/// One thread at a time, but for place().
class SourceReader {
 public:
  virtual ~SourceReader();

  /// False when the row has read its share of the first epoch and the order ends there (`once`).
  virtual bool next(Document& document) = 0;
  /// Before the next document, a few integers: `seek(position())` of another reader of the same row
  /// continues exactly here. Throws a data Error for a position of another row or source.
  virtual Value position() const = 0;
  virtual void seek(const Value& position) = 0;
  /// Epochs of the source that this row has begun, minus one.
  virtual int64_t epoch() const = 0;
  /// [any thread] The document that is being read, for messages.
  virtual std::string place() const = 0;
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
/// Streamed with at least as many shards as rows: the same of whole shards. Streamed with fewer:
/// the same of its documents. Shuffled streams have their shards permuted and each row's documents
/// mixed in blocks of `shuffle_buffer`. `dataset` outlives the access, the access its readers.
std::unique_ptr<SourceAccess> access_source(const std::string& name, const Dataset& dataset,
                                            int64_t num_rows, const OrderOptions& options);

}  // namespace titan::core
