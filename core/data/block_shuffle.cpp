#include "core/data/block_shuffle.h"

#include <titan/error.h>

#include "core/data/document_size.h"
#include "core/data/permutation.h"
#include "core/data/saved_position.h"

namespace titan::core {

BlockShuffle::BlockShuffle(std::unique_ptr<SourceReader> inner, int64_t num_documents, uint64_t key)
    : inner_(std::move(inner)), num_documents_(num_documents), key_(key) {
  start_ = inner_->position();
}

void BlockShuffle::fill() {
  documents_.clear();
  size_t bytes = 0;
  for (Document document; static_cast<int64_t>(documents_.size()) < num_documents_ &&
                          bytes < kMaxBlockBytes && inner_->next(document);) {
    bytes += content_bytes(document);
    documents_.push_back(std::move(document));
    document = {};
  }
}

bool BlockShuffle::next(Document& document) {
  if (must_refill_) {
    fill();
    must_refill_ = false;
    TITAN_CHECK(given_ <= static_cast<int64_t>(documents_.size()), data,
                "the saved data position is document ", given_, " of a block that holds ",
                documents_.size(), "; was it saved with another data set or data.shuffle_buffer?");
  }
  if (given_ == static_cast<int64_t>(documents_.size())) {
    if (!documents_.empty()) ++block_;
    start_ = inner_->position();
    given_ = 0;
    fill();
    if (documents_.empty()) return false;
  }
  const Permutation order(documents_.size(), mix(key_, static_cast<uint64_t>(block_)));
  document = std::move(documents_[order(static_cast<uint64_t>(given_++))]);
  return true;
}

Value BlockShuffle::position() const {
  return Value::map({{"start", start_}, {"block", block_}, {"given", given_}});
}

void BlockShuffle::seek(const Value& position) {
  const int64_t given = saved_integer(position, "given");
  block_ = saved_integer(position, "block");
  start_ = saved_member(position, "start");
  inner_->seek(start_);
  documents_.clear();
  given_ = given;
  must_refill_ = given > 0;
}

}  // namespace titan::core
