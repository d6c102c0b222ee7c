#include "core/data/order/source_access.h"

#include <algorithm>
#include <atomic>

#include <titan/error.h>

#include "core/data/order/block_shuffle.h"
#include "core/data/order/permutation.h"
#include "core/data/order/round_robin_documents.h"
#include "core/data/order/saved_position.h"
#include "core/data/order/shard_walk.h"

namespace titan::core {
namespace {

class IndexedReader final : public SourceReader {
 public:
  IndexedReader(const IndexedDocuments& documents, int64_t row, int64_t num_rows,
                const OrderOptions& options, uint64_t key)
      : documents_(documents),
        size_(documents.size()),
        row_(row),
        num_rows_(num_rows),
        shuffle_(options.shuffle),
        once_(options.once),
        key_(key),
        next_(row) {}

  bool next(Document& document) override {
    if (once_ && next_ >= size_) return false;
    const int64_t index = index_of(next_);
    reading_.store(index, std::memory_order_relaxed);
    documents_.read(index, document);
    next_ += num_rows_;
    return true;
  }
  Value position() const override { return Value::map({{"next", next_}}); }
  void seek(const Value& position) override {
    const int64_t next = saved_integer(position, "next", row_);
    TITAN_CHECK((next - row_) % num_rows_ == 0, data, "the saved data position is document ", next,
                ", which is not one of row ", row_, " of ", num_rows_);
    next_ = next;
  }
  int64_t epoch() const override { return std::max<int64_t>(0, next_ - num_rows_) / size_; }
  std::string place() const override {
    return documents_.place(reading_.load(std::memory_order_relaxed));
  }

 private:
  int64_t index_of(int64_t ordinal) const {
    const auto place = static_cast<uint64_t>(ordinal % size_);
    if (!shuffle_) return static_cast<int64_t>(place);
    const uint64_t epoch = static_cast<uint64_t>(ordinal / size_);
    return static_cast<int64_t>(Permutation(static_cast<uint64_t>(size_), mix(key_, epoch))(place));
  }

  const IndexedDocuments& documents_;
  int64_t size_, row_, num_rows_;
  bool shuffle_, once_;
  uint64_t key_;
  int64_t next_;  // number in the endless sequence of epochs
  std::atomic<int64_t> reading_{0};
};

class IndexedAccess final : public SourceAccess {
 public:
  IndexedAccess(const std::string& name, const IndexedDocuments& documents, int64_t num_rows,
                const OrderOptions& options)
      : documents_(documents),
        num_rows_(num_rows),
        options_(options),
        key_(mix(options.seed, name)) {
    TITAN_CHECK(documents.size() > 0, data, "the data set holds no document");
  }
  std::unique_ptr<SourceReader> open(int64_t row) override {
    return std::make_unique<IndexedReader>(documents_, row, num_rows_, options_, key_);
  }

 private:
  const IndexedDocuments& documents_;
  int64_t num_rows_;
  OrderOptions options_;
  uint64_t key_;
};

/// A row with its own shards.
class ShardReader final : public SourceReader {
 public:
  ShardReader(const StreamedDocuments& documents, const ShardOrder& order)
      : walk_(documents, order) {}
  bool next(Document& document) override { return walk_.next(&document); }
  Value position() const override { return walk_.position(); }
  void seek(const Value& position) override { walk_.seek(position); }
  int64_t epoch() const override { return walk_.epoch(); }
  std::string place() const override { return walk_.place(); }

 private:
  ShardWalk walk_;
};

/// A row that shares shards with other rows.
class RoundRobinReader final : public SourceReader {
 public:
  RoundRobinReader(RoundRobinDocuments& documents, int64_t row)
      : documents_(documents), handle_(documents.add_row(row)) {}
  bool next(Document& document) override { return documents_.next(handle_, document); }
  Value position() const override { return documents_.position(handle_); }
  void seek(const Value& position) override { documents_.seek(handle_, position); }
  int64_t epoch() const override { return documents_.epoch(handle_); }
  std::string place() const override { return documents_.place(); }

 private:
  RoundRobinDocuments& documents_;
  size_t handle_;
};

class StreamedAccess final : public SourceAccess {
 public:
  StreamedAccess(const std::string& name, const StreamedDocuments& documents, int64_t num_rows,
                 const OrderOptions& options)
      : documents_(documents),
        num_rows_(num_rows),
        options_(options),
        order_{.shuffle = options.shuffle, .key = mix(options.seed, name), .once = options.once},
        block_{.num_documents = options.shuffle_buffer} {
    TITAN_CHECK(documents.num_shards() > 0, data, "the data set holds no shard");
    if (documents.num_shards() >= num_rows) return;
    const size_t all = options.max_shared_block_bytes;
    round_robin_ = std::make_unique<RoundRobinDocuments>(
        documents, order_, num_rows,
        options.shuffle ? 2 * all : RoundRobinDocuments::kMaxQueuedBytes);
    const size_t share = std::max<size_t>(1, all / static_cast<size_t>(num_rows));
    block_.num_bytes = std::min(block_.num_bytes, share);
  }

  std::unique_ptr<SourceReader> open(int64_t row) override {
    std::unique_ptr<SourceReader> reader;
    if (round_robin_) {
      reader = std::make_unique<RoundRobinReader>(*round_robin_, row);
    } else {
      ShardOrder own = order_;
      own.first = row;
      own.stride = num_rows_;
      reader = std::make_unique<ShardReader>(documents_, own);
    }
    if (!options_.shuffle) return reader;
    return std::make_unique<BlockShuffle>(std::move(reader), block_,
                                          mix(order_.key, static_cast<uint64_t>(row)));
  }

 private:
  const StreamedDocuments& documents_;
  int64_t num_rows_;
  OrderOptions options_;
  ShardOrder order_;
  BlockLimits block_;
  std::unique_ptr<RoundRobinDocuments> round_robin_;
};

}  // namespace

SourceAccess::~SourceAccess() = default;

std::unique_ptr<SourceAccess> access_source(const std::string& name, const Dataset& dataset,
                                            int64_t num_rows, const OrderOptions& options) {
  const IndexedDocuments* indexed = dataset.indexed();
  const StreamedDocuments* streamed = dataset.streamed();
  TITAN_CHECK((indexed != nullptr) != (streamed != nullptr), plugin, "the data set of source '",
              name, "' must offer its documents either indexed or streamed");
  if (indexed) return std::make_unique<IndexedAccess>(name, *indexed, num_rows, options);
  return std::make_unique<StreamedAccess>(name, *streamed, num_rows, options);
}

}  // namespace titan::core
