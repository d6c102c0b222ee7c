// Mixes the documents of a stream in blocks. Used for shuffling sources that cannot be read in any
// order.
#pragma once

#include <memory>
#include <vector>

#include "core/data/source_reader.h"

namespace titan::core {

/// Reads `num_documents` documents, or fewer when they are large, and gives them out in an order
/// chosen by `key` and the block's number; then the next block. The position is that of the block's
/// start and a place in it: a resumed run reads the block again.
class BlockShuffle final : public SourceReader {
 public:
  static constexpr size_t kMaxBlockBytes = size_t{32} << 20;

  BlockShuffle(std::unique_ptr<SourceReader> inner, int64_t num_documents, uint64_t key);

  bool next(Document& document) override;
  Value position() const override;
  void seek(const Value& position) override;
  int64_t epoch() const override { return inner_->epoch(); }
  std::string place() const override { return inner_->place(); }

 private:
  void fill();

  std::unique_ptr<SourceReader> inner_;
  int64_t num_documents_;
  uint64_t key_;
  Value start_;               // of the block, in the inner reader
  int64_t block_ = 0;         // number of the block
  int64_t given_ = 0;         // documents of it that were given out
  bool must_refill_ = false;  // after seek: reading waits until a document is asked for
  std::vector<Document> documents_;
};

}  // namespace titan::core
