#include "document_blocks.h"

#include <algorithm>
#include <utility>

#include <titan/error.h>

namespace titan::tokenising {
namespace {

constexpr int64_t kMostDocuments = 4096;
constexpr int64_t kFirstDocuments = 8;  // before the average document size is known

int64_t bytes_of(const Document& document) {
  return document.is_tokenised ? static_cast<int64_t>(document.tokens.size() * sizeof(int32_t))
                               : static_cast<int64_t>(document.text.size());
}

}  // namespace

DocumentBlocks::DocumentBlocks(const Dataset& dataset, SourcePosition start, int64_t block_bytes)
    : indexed_(dataset.indexed()),
      streamed_(dataset.streamed()),
      block_bytes_(block_bytes),
      position_(std::move(start)) {
  TITAN_CHECK((indexed_ == nullptr) != (streamed_ == nullptr), plugin,
              "a data set must be either indexed or streamed");
  const int64_t end = indexed_ ? indexed_->size() : streamed_->num_shards();
  const int64_t at = indexed_ ? position_.documents : position_.shard;
  TITAN_CHECK(at >= 0 && at <= end, data, "the data set has ", end,
              indexed_ ? " documents" : " shards", ", but reading should continue at ", at);
}

bool DocumentBlocks::claim(DocumentBlock& block) {
  block.count = 0;
  block.error = nullptr;
  const std::lock_guard lock(mutex_);
  if (has_ended_) return false;
  block.first = position_.documents;
  const bool is_there = indexed_ ? claim_range(block) : read_block(block);
  if (!is_there) {
    has_ended_ = true;
    return false;
  }
  position_.documents += block.count;
  block.end = position_;
  block.number = num_claimed_++;
  return true;
}

bool DocumentBlocks::claim_range(DocumentBlock& block) {
  const int64_t left = indexed_->size() - position_.documents;
  const int64_t documents = documents_read_;  // before the bytes, which are added first
  const int64_t bytes = bytes_read_;
  const int64_t wanted =
      documents == 0 ? kFirstDocuments
                     : static_cast<int64_t>(static_cast<double>(block_bytes_) /
                                            static_cast<double>(std::max<int64_t>(bytes, 1)) *
                                            static_cast<double>(documents));
  block.count = std::min(left, std::clamp<int64_t>(wanted, 1, kMostDocuments));
  return block.count > 0;
}

bool DocumentBlocks::read_block(DocumentBlock& block) try {
  int64_t bytes = 0;
  while (block.count == 0) {
    if (position_.shard == streamed_->num_shards()) return false;
    if (!stream_) {
      stream_ = streamed_->open(position_.shard);
      if (!position_.in_shard.is_null()) stream_->seek(position_.in_shard);
    }
    while (bytes < block_bytes_ && block.count < kMostDocuments) {
      if (block.documents.size() == static_cast<size_t>(block.count))
        block.documents.emplace_back();
      Document& document = block.documents[static_cast<size_t>(block.count)];
      if (!stream_->next(document)) {
        stream_.reset();
        ++position_.shard;
        break;
      }
      bytes += bytes_of(document);
      ++block.count;
    }
    position_.in_shard = stream_ ? stream_->position() : Value();
  }
  return true;
} catch (...) {
  block.error = std::current_exception();
  has_ended_ = true;
  return true;
}

const Document& DocumentBlocks::document(const DocumentBlock& block, int64_t i, Document& scratch) {
  if (streamed_) return block.documents[static_cast<size_t>(i)];
  indexed_->read(block.first + i, scratch);
  bytes_read_ += bytes_of(scratch);  // first, so a concurrent reader overestimates the size
  ++documents_read_;
  return scratch;
}

std::string DocumentBlocks::place(const DocumentBlock& block, int64_t i) const {
  if (indexed_) return indexed_->place(block.first + i);
  return "document " + std::to_string(block.first + i) + " of the data set, counted from 0";
}

}  // namespace titan::tokenising
