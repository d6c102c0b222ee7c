#include "core/data/row_packer.h"

#include <titan/error.h>

namespace titan::core {

RowPacker::RowPacker(std::unique_ptr<DocumentStream> stream, const Tokenizer& tokenizer,
                     RowShard shard, int64_t window)
    : stream_(std::move(stream)),
      tokenizer_(tokenizer),
      special_(tokenizer.special_tokens()),
      shard_(shard),
      window_(window) {
  stream_->start_epoch(0);
}

std::vector<int32_t> RowPacker::next() {
  Document document;
  while (static_cast<int64_t>(buffer_.size() - consumed_) < window_) {
    if (stream_->next(document)) {
      append_document(document);
      continue;
    }
    TITAN_CHECK(
        documents_in_epoch_ > 0, data, "row ", shard_.row, " of ", shard_.num_rows,
        " of the global batch has no document: each row reads documents of its own, so the data "
        "set must hold "
        "at least as many documents as the global batch has sequences; use more data or a smaller "
        "training.global_batch_size or training.local_batch_size");
    TITAN_CHECK(tokens_in_epoch_ >= window_, data, "row ", shard_.row, " of ", shard_.num_rows,
                " of the global batch holds only ", tokens_in_epoch_, " tokens in its ",
                documents_in_epoch_, " documents, less than one sequence of ", window_,
                " (training.seq_len + 1); use a smaller training.seq_len, a smaller global batch "
                "or more data");
    ++epoch_;
    tokens_in_epoch_ = documents_in_epoch_ = 0;
    stream_->start_epoch(epoch_);
  }
  const auto begin = buffer_.begin() + static_cast<int64_t>(consumed_);
  std::vector<int32_t> window(begin, begin + window_);
  consumed_ += static_cast<size_t>(window_);
  if (consumed_ > buffer_.size() / 2) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<int64_t>(consumed_));
    consumed_ = 0;
  }
  return window;
}

void RowPacker::append_document(const Document& document) {
  const size_t before = buffer_.size();
  if (special_.bos) buffer_.push_back(*special_.bos);
  if (document.is_tokenised) {
    buffer_.insert(buffer_.end(), document.tokens.begin(), document.tokens.end());
  } else {
    tokenizer_.encode(document.text, buffer_);
  }
  if (special_.eos) buffer_.push_back(*special_.eos);
  tokens_in_epoch_ += static_cast<int64_t>(buffer_.size() - before);
  ++documents_in_epoch_;
}

Value RowPacker::state() const {
  Value::List leftover;
  leftover.reserve(buffer_.size() - consumed_);
  for (size_t i = consumed_; i < buffer_.size(); ++i) leftover.emplace_back(int64_t{buffer_[i]});
  return Value::map({{"epoch", epoch_},
                     {"tokens_in_epoch", tokens_in_epoch_},
                     {"documents_in_epoch", documents_in_epoch_},
                     {"stream", stream_->state()},
                     {"leftover", std::move(leftover)}});
}

void RowPacker::restore(const Value& state) {
  epoch_ = state.at("epoch").as_integer();
  tokens_in_epoch_ = state.at("tokens_in_epoch").as_integer();
  documents_in_epoch_ = state.at("documents_in_epoch").as_integer();
  stream_->restore(state.at("stream"));
  buffer_.clear();
  consumed_ = 0;
  for (const Value& token : state.at("leftover").as_list())
    buffer_.push_back(static_cast<int32_t>(token.as_integer()));
}

}  // namespace titan::core
