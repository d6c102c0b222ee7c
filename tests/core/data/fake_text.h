// Data sets and a tokenizer whose tokens reveal their document and position, for tests of the data
// path.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/tokenizer.h>

namespace titan::testing {

/// Document d of `lengths`: tokens of value base + 10 d + position (mod 10).
inline Document numbered_document(int64_t d, int64_t length, int64_t base = 0) {
  Document document;
  document.is_tokenised = true;
  for (int64_t i = 0; i < length; ++i)
    document.tokens.push_back(static_cast<int32_t>(base + 10 * d + i % 10));
  return document;
}

/// Reads in any order and counts reads. Document `fails_at` throws; document `hangs_at` blocks
/// until that is reset.
class NumberedDataset final : public IndexedDataset {
 public:
  explicit NumberedDataset(std::vector<int64_t> lengths, int64_t fails_at = -1, int64_t base = 0)
      : lengths_(std::move(lengths)), fails_at_(fails_at), base_(base) {}

  int64_t size() const override { return static_cast<int64_t>(lengths_.size()); }
  void read(int64_t index, Document& document) const override {
    TITAN_CHECK(index != fails_at_, data, "document ", index, " is broken");
    while (index == hangs_at) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    document = numbered_document(index, lengths_[static_cast<size_t>(index)], base_);
    ++reads;
  }
  std::string place(int64_t index) const override { return "numbered:" + std::to_string(index); }
  std::string fingerprint() const override { return "numbered " + std::to_string(size()); }

  std::atomic<int64_t> hangs_at{-1};
  mutable std::atomic<int64_t> reads{0};

 private:
  std::vector<int64_t> lengths_;
  int64_t fails_at_, base_;
};

/// The same documents, in shards that are read sequentially.
class ShardedDataset final : public StreamedDataset {
 public:
  /// Reading a document takes `seconds`.
  ShardedDataset(std::vector<int64_t> lengths, std::vector<int64_t> shard_sizes, int64_t base = 0,
                 double seconds = 0)
      : lengths_(std::move(lengths)),
        shard_sizes_(std::move(shard_sizes)),
        base_(base),
        seconds_(seconds) {}

  int64_t num_shards() const override { return static_cast<int64_t>(shard_sizes_.size()); }
  std::unique_ptr<DocumentStream> open(int64_t shard) const override;
  std::string fingerprint() const override { return "sharded " + std::to_string(lengths_.size()); }

 private:
  friend class ShardedStream;
  std::vector<int64_t> lengths_, shard_sizes_;
  int64_t base_;
  double seconds_;
};

class ShardedStream final : public DocumentStream {
 public:
  ShardedStream(const ShardedDataset& dataset, int64_t shard) : dataset_(dataset) {
    for (int64_t s = 0; s < shard; ++s) begin_ += dataset.shard_sizes_[static_cast<size_t>(s)];
    size_ = dataset.shard_sizes_[static_cast<size_t>(shard)];
  }
  bool next(Document& document) override {
    if (next_ == size_) return false;
    if (dataset_.seconds_ > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(dataset_.seconds_));
    const int64_t d = begin_ + next_++;
    document = numbered_document(d, dataset_.lengths_[static_cast<size_t>(d)], dataset_.base_);
    return true;
  }
  bool skip() override { return next_ < size_ && ++next_; }
  Value position() const override { return Value(next_.load()); }
  void seek(const Value& position) override { next_ = position.as_integer(); }
  std::string place() const override { return "sharded:" + std::to_string(begin_ + next_); }

 private:
  const ShardedDataset& dataset_;
  int64_t begin_ = 0, size_ = 0;
  std::atomic<int64_t> next_{0};
};

inline std::unique_ptr<DocumentStream> ShardedDataset::open(int64_t shard) const {
  return std::make_unique<ShardedStream>(*this, shard);
}

/// Documents of text.
class TextDataset final : public IndexedDataset {
 public:
  explicit TextDataset(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  int64_t size() const override { return static_cast<int64_t>(texts_.size()); }
  void read(int64_t index, Document& document) const override {
    document.set_text(texts_[static_cast<size_t>(index)]);
  }
  std::string place(int64_t index) const override { return "text:" + std::to_string(index); }
  std::string fingerprint() const override { return "text " + std::to_string(size()); }

 private:
  std::vector<std::string> texts_;
};

/// One token per byte; BOS 1000 and EOS 1001 when asked for.
class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(SpecialTokens special = {}) : special_(special) {}
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (unsigned char c : text) ids.push_back(c);
  }
  std::string decode(std::span<const int32_t> ids) const override {
    return std::string(ids.begin(), ids.end());
  }
  int64_t vocab_size() const override { return 1002; }
  SpecialTokens special_tokens() const override { return special_; }

 private:
  SpecialTokens special_;
};

}  // namespace titan::testing
