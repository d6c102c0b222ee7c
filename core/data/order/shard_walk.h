// Iterates over the documents of shards, one shard after the other, epoch after epoch. Used by the
// readers of streamed sources.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <titan/dataset.h>

namespace titan::core {

/// Which shards, in which order.
struct ShardOrder {
  int64_t first = 0;  ///< in the endless sequence of epochs; then every `stride`-th
  int64_t stride = 1;
  bool shuffle = false;
  uint64_t key = 0;   ///< determines the order of each epoch
  bool once = false;  ///< ends with the first epoch
};

/// Thread: one at a time, except for place().
class ShardWalk {
 public:
  ShardWalk(const StreamedDocuments& documents, const ShardOrder& order)
      : documents_(documents), order_(order), ordinal_(order.first) {}

  /// The next document; `document` null: skips it. False at the end of the only epoch. Throws a
  /// data Error when a whole epoch of shards holds no document.
  bool next(Document* document);

  /// The epoch of the document that was returned last.
  int64_t epoch() const { return ordinal_ / documents_.num_shards(); }
  Value position() const;
  void seek(const Value& position);
  /// [any thread]
  std::string place() const;

 private:
  bool open_shard();
  void set_stream(std::shared_ptr<DocumentStream> stream);

  const StreamedDocuments& documents_;
  ShardOrder order_;
  int64_t ordinal_;                         // of the current shard in the sequence of epochs
  std::shared_ptr<DocumentStream> stream_;  // null: the shard is not open yet
  mutable std::mutex stream_mutex_;         // guards stream_ for place() on another thread
};

}  // namespace titan::core
