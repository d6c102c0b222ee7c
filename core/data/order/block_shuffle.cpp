#include "core/data/order/block_shuffle.h"

#include <utility>

#include <titan/error.h>

#include "core/data/order/document_size.h"
#include "core/data/order/permutation.h"
#include "core/data/order/saved_position.h"

namespace titan::core {
namespace {

/// Version of saved positions. 1 (not written): blocks end at `num_documents` or kMaxBytes and may
/// span epochs. 2: all documents of a block are of one epoch.
constexpr int64_t kVersion = 2;

}  // namespace

BlockShuffle::BlockShuffle(std::unique_ptr<SourceReader> inner, const BlockLimits& limits,
                           uint64_t key)
    : inner_(std::move(inner)), limits_(limits), key_(key) {
  start_ = inner_->position();
}

void BlockShuffle::fill() {
  documents_.clear();
  ends_with_epoch_ ? fill_with_one_epoch() : fill_over_epochs();
}

void BlockShuffle::fill_with_one_epoch() {
  size_t bytes = 0;
  const auto take = [&](Document&& document) {
    bytes += content_bytes(document);
    documents_.push_back(std::move(document));
  };
  if (ahead_) {
    epoch_ = ahead_->epoch;
    take(std::move(ahead_->document));
    ahead_.reset();
  }
  while (static_cast<int64_t>(documents_.size()) < limits_.num_documents &&
         bytes < limits_.num_bytes) {
    Value before = inner_->position();
    Document document;
    if (!inner_->next(document)) return;
    const int64_t epoch = inner_->epoch();
    if (!documents_.empty() && epoch != epoch_) {
      ahead_ = {std::move(document), std::move(before), epoch};
      return;
    }
    epoch_ = epoch;
    take(std::move(document));
  }
}

void BlockShuffle::fill_over_epochs() {
  size_t bytes = 0;
  for (Document document; static_cast<int64_t>(documents_.size()) < limits_.num_documents &&
                          bytes < BlockLimits::kMaxBytes && inner_->next(document);) {
    epoch_ = inner_->epoch();
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
    start_ = start_of_next();
    ends_with_epoch_ = true;
    given_ = 0;
    fill();
    if (documents_.empty()) return false;
  }
  const Permutation order(documents_.size(), mix(key_, static_cast<uint64_t>(block_)));
  document = std::move(documents_[order(static_cast<uint64_t>(given_++))]);
  return true;
}

Value BlockShuffle::position() const {
  Value position = Value::map({{"start", start_}, {"block", block_}, {"given", given_}});
  if (!ends_with_epoch_) return position;
  position["version"] = kVersion;
  position["epoch"] = epoch_;
  return position;
}

void BlockShuffle::seek(const Value& position) {
  const int64_t given = saved_integer(position, "given");
  ends_with_epoch_ = position.find("version") != nullptr;
  if (ends_with_epoch_) {
    const int64_t version = saved_integer(position, "version");
    TITAN_CHECK(
        version == kVersion, data, "the saved data position of shuffled documents is of ",
        "version ", version, ", this program reads versions 1 and ", kVersion,
        "; continue with the program that saved it, or set checkpoint.exclude_from_loading = "
        "[\"dataloader\"] to start the data from its beginning");
    epoch_ = saved_integer(position, "epoch");
  }
  block_ = saved_integer(position, "block");
  start_ = saved_member(position, "start");
  inner_->seek(start_);
  if (!ends_with_epoch_) epoch_ = inner_->epoch();
  documents_.clear();
  ahead_.reset();
  given_ = given;
  must_refill_ = given > 0 || !ends_with_epoch_;  // the first document may be partly used
}

}  // namespace titan::core
