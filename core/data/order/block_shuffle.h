// Shuffles the documents of a stream in blocks. Used for sources without random access.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/order/source_reader.h"

namespace titan::core {

/// Largest size of a block, which also ends with its epoch.
struct BlockLimits {
  static constexpr size_t kMaxBytes = size_t{32} << 20;

  int64_t num_documents = 1;
  size_t num_bytes = kMaxBytes;  ///< the document that reaches this size is the block's last one
};

/// Reads the documents of a block, which are all of one epoch, and returns them in an order that
/// `key` and the block's number determine; then the next block. So each document comes once in each
/// epoch. The position consists of the block's start and an index in the block; a resumed run reads
/// the block again.
class BlockShuffle final : public SourceReader {
 public:
  BlockShuffle(std::unique_ptr<SourceReader> inner, const BlockLimits& limits, uint64_t key);

  bool next(Document& document) override;
  Value position() const override;
  /// A block of a version 1 position may span epochs and is completed in that way; the blocks after
  /// it end with their epochs.
  void seek(const Value& position) override;
  int64_t epoch() const override { return epoch_; }
  std::string place() const override { return inner_->place(); }

 private:
  struct Ahead {  // the first document of the next epoch
    Document document;
    Value before;
    int64_t epoch;
  };

  void fill();
  void fill_with_one_epoch();
  void fill_over_epochs();
  Value start_of_next() const { return ahead_ ? ahead_->before : inner_->position(); }

  std::unique_ptr<SourceReader> inner_;
  BlockLimits limits_;
  uint64_t key_;
  Value start_;                  // of the block, in the inner reader
  int64_t block_ = 0;            // number of the block
  int64_t given_ = 0;            // documents of it returned so far
  int64_t epoch_ = 0;            // of the block
  bool must_refill_ = false;     // after seek: the block is read by the next `next`
  bool ends_with_epoch_ = true;  // false: the block is one of version 1
  std::vector<Document> documents_;
  std::optional<Ahead> ahead_;
};

}  // namespace titan::core
