// A data set and a tokenizer whose tokens tell where they come from, for tests of the data path.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/tokenizer.h>

namespace titan::testing {

/// Document d holds `length(d)` tokens of value 10 * d + position (mod 10).
class NumberedDataset final : public Dataset {
 public:
  explicit NumberedDataset(std::vector<int64_t> lengths, int64_t fails_at = -1)
      : lengths_(std::move(lengths)), fails_at_(fails_at) {}

  std::unique_ptr<DocumentStream> open(const RowShard& shard) const override;
  std::optional<int64_t> num_documents() const override {
    return static_cast<int64_t>(lengths_.size());
  }
  std::string fingerprint() const override { return "numbered"; }

 private:
  friend class NumberedStream;
  std::vector<int64_t> lengths_;
  int64_t fails_at_;
};

class NumberedStream final : public DocumentStream {
 public:
  NumberedStream(const NumberedDataset& dataset, RowShard shard)
      : dataset_(dataset), shard_(shard) {}

  bool next(Document& document) override {
    if (next_ >= static_cast<int64_t>(dataset_.lengths_.size())) return false;
    TITAN_CHECK(next_ != dataset_.fails_at_, data, "document ", next_, " is broken");
    document = {};
    document.is_tokenised = true;
    for (int64_t i = 0; i < dataset_.lengths_[static_cast<size_t>(next_)]; ++i)
      document.tokens.push_back(static_cast<int32_t>(10 * next_ + i % 10));
    next_ += shard_.num_rows;
    return true;
  }
  void start_epoch(int64_t) override { next_ = shard_.row; }
  Value state() const override { return Value::map({{"next", next_}}); }
  void restore(const Value& state) override { next_ = state.at("next").as_integer(); }

 private:
  const NumberedDataset& dataset_;
  RowShard shard_;
  int64_t next_ = 0;
};

inline std::unique_ptr<DocumentStream> NumberedDataset::open(const RowShard& shard) const {
  return std::make_unique<NumberedStream>(*this, shard);
}

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
