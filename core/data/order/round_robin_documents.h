// Assigns the documents of a streamed source to rows round-robin when there are fewer shards than
// rows. The rows of one process share one pass over the data. Used by source_access.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/data/order/shard_walk.h"
#include "core/data/order/source_reader.h"

namespace titan::core {

/// Document n of the endless sequence of epochs goes to row n mod num_rows. Documents that a row
/// has not requested yet wait in its queue. When the queues together exceed a bound (one row's
/// documents are much longer than another's), the row with the fullest queue continues with its own
/// pass. Rows may call from several threads at once.
class RoundRobinDocuments {
 public:
  static constexpr size_t kMaxQueuedBytes = size_t{128} << 20;

  /// `documents` outlives this.
  RoundRobinDocuments(const StreamedDocuments& documents, const ShardOrder& order, int64_t num_rows,
                      size_t max_queued_bytes = kMaxQueuedBytes);
  ~RoundRobinDocuments();

  /// All rows are added before the first `next`. Returns the row's handle.
  size_t add_row(int64_t row);

  bool next(size_t handle, Document& document);
  Value position(size_t handle) const;
  /// Only before the first `next` of any row.
  void seek(size_t handle, const Value& position);
  int64_t epoch(size_t handle) const;
  /// [any thread]
  std::string place() const;

 private:
  struct Position;
  struct Pass;  // over all documents, from a position on
  struct Row;

  Pass& shared_pass();
  void give_own_pass(Row& row);

  const StreamedDocuments& documents_;
  ShardOrder order_;
  int64_t num_rows_;
  size_t max_queued_bytes_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::vector<Row*> row_of_;      // by row number; null: a row of another rank
  std::shared_ptr<Pass> shared_;  // null until the first `next`
  size_t queued_bytes_ = 0;
  mutable std::mutex place_mutex_;  // of shared_, so that place() never waits for a slow read
};

}  // namespace titan::core
