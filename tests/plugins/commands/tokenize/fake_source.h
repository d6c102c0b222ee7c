// Data sets and a tokenizer without files, whose tokens are easy to compute, and a reader of the
// output. Used by the tests of this folder.
#pragma once

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/tokenizer.h>

#include "plugins/commands/tokenize/tokenization.h"

namespace titan::tokenising::tokenize_test {

/// The id of a byte is that byte times `factor`.
class WrittenTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kBos = 256, kEos = 257;

  explicit WrittenTokenizer(int64_t vocab_size = 300, int32_t factor = 1)
      : vocab_size_(vocab_size), factor_(factor) {}
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    for (const char c : utf8) ids.push_back(static_cast<unsigned char>(c) * factor_);
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) text += static_cast<char>(id / factor_);
    return text;
  }
  int64_t vocab_size() const override { return vocab_size_; }
  SpecialTokens special_tokens() const override { return {.bos = kBos, .eos = kEos, .pad = {}}; }

 private:
  int64_t vocab_size_;
  int32_t factor_;
};

/// Documents of very different lengths, some empty, some large.
inline std::vector<std::string> mixed_texts(int count) {
  std::vector<std::string> texts;
  uint32_t state = 12345;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    const size_t length = i % 97 == 5 ? 60'000 : i % 11 == 3 ? 0 : state >> 24;
    std::string text;
    for (size_t j = 0; j < length; ++j)
      text += static_cast<char>('a' + (static_cast<size_t>(i) + j * 7) % 26);
    texts.push_back(std::to_string(i).substr(0, length) + text);
  }
  return texts;
}

class FakeIndexed final : public IndexedDataset {
 public:
  explicit FakeIndexed(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  int64_t size() const override { return static_cast<int64_t>(texts_.size()); }
  void read(int64_t index, Document& document) const override {
    if (bad.contains(index)) fail(ErrorKind::data, place(index), ": bad document");
    ++reads;
    document.set_text(texts_[static_cast<size_t>(index)]);
  }
  std::string place(int64_t index) const override { return "fake:" + std::to_string(index); }
  std::string fingerprint() const override { return "fake"; }

  std::set<int64_t> bad;
  mutable std::atomic<int64_t> reads{0};

 private:
  std::vector<std::string> texts_;
};

/// `texts` in `num_shards` consecutive shards. Some are empty when there are few texts.
class FakeStreamed final : public StreamedDataset {
 public:
  FakeStreamed(std::vector<std::string> texts, int64_t num_shards)
      : texts_(std::move(texts)), num_shards_(num_shards) {}

  int64_t num_shards() const override { return num_shards_; }
  std::unique_ptr<DocumentStream> open(int64_t shard) const override {
    return std::make_unique<Stream>(*this, first_of(shard), first_of(shard + 1));
  }
  std::string fingerprint() const override { return "fake"; }

  std::set<int64_t> bad;
  mutable std::atomic<int64_t> reads{0};

 private:
  class Stream final : public DocumentStream {
   public:
    Stream(const FakeStreamed& source, int64_t first, int64_t end)
        : source_(source), next_(first), end_(end) {}
    bool next(Document& document) override {
      if (next_ == end_) return false;
      if (source_.bad.contains(next_)) fail(ErrorKind::data, place(), ": bad document");
      ++source_.reads;
      document.set_text(source_.texts_[static_cast<size_t>(next_++)]);
      return true;
    }
    bool skip() override { return next_ < end_ && ++next_; }
    Value position() const override { return Value(next_); }
    void seek(const Value& position) override { next_ = position.as_integer(); }
    std::string place() const override { return "fake:" + std::to_string(next_); }

   private:
    const FakeStreamed& source_;
    int64_t next_, end_;
  };

  /// Every third shard is empty.
  int64_t first_of(int64_t shard) const {
    const auto count = static_cast<int64_t>(texts_.size());
    if (shard >= num_shards_) return count;
    return count * (shard - shard % 3 / 2) / num_shards_;
  }

  std::vector<std::string> texts_;
  int64_t num_shards_;
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The documents of PREFIX.bin and PREFIX.idx. Checks every field of the index.
inline std::vector<std::vector<int64_t>> read_output(const std::filesystem::path& prefix) {
  const std::string bin = read_bytes(prefix.string() + ".bin");
  const std::string idx = read_bytes(prefix.string() + ".idx");
  const auto number = [&]<class Number>(size_t offset, Number zero) {
    EXPECT_LE(offset + sizeof zero, idx.size());
    if (offset + sizeof zero <= idx.size()) std::memcpy(&zero, idx.data() + offset, sizeof zero);
    return zero;
  };
  EXPECT_EQ(idx.substr(0, 9), std::string("MMIDIDX\0\0", 9));
  EXPECT_EQ(number(9, uint64_t{0}), 1u);
  const auto code = number(17, uint8_t{0});
  EXPECT_TRUE(code == 4 || code == 8) << int{code};
  const size_t width = code == 8 ? 2 : 4;
  const auto count = static_cast<size_t>(number(18, uint64_t{0}));
  EXPECT_EQ(number(26, uint64_t{0}), count + 1);
  EXPECT_EQ(idx.size(), 34 + 12 * count + 8 * (count + 1));
  std::vector<std::vector<int64_t>> documents(count);
  size_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(number(34 + 4 * count + 8 * i, int64_t{0}), static_cast<int64_t>(offset));
    EXPECT_EQ(number(34 + 12 * count + 8 * i, int64_t{0}), static_cast<int64_t>(i));
    for (int32_t j = 0; j < number(34 + 4 * i, int32_t{0}); ++j, offset += width) {
      uint32_t id = 0;
      if (offset + width <= bin.size()) std::memcpy(&id, bin.data() + offset, width);
      documents[i].push_back(id);
    }
  }
  EXPECT_EQ(number(34 + 20 * count, int64_t{0}), static_cast<int64_t>(count));
  EXPECT_EQ(offset, bin.size());
  return documents;
}

/// The documents that `WrittenTokenizer(..., factor)` makes of `texts`.
inline std::vector<std::vector<int64_t>> expected_documents(const std::vector<std::string>& texts,
                                                            const Framing& framing,
                                                            int64_t factor = 1) {
  std::vector<std::vector<int64_t>> documents;
  for (const std::string& text : texts) {
    std::vector<int64_t>& ids = documents.emplace_back();
    if (framing.bos) ids.push_back(*framing.bos);
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c) * factor);
    if (framing.eos) ids.push_back(*framing.eos);
  }
  return documents;
}

inline constexpr Framing kFramed = {.bos = WrittenTokenizer::kBos, .eos = WrittenTokenizer::kEos};

/// A new folder, and a tokenization into it with small blocks.
class TokenizeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "titan_tokenize_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    request_ = {.prefix = folder_ / "out" / "text",
                .dataset = &indexed_,
                .tokenizer = &tokenizer_,
                .framing = kFramed,
                .identity = Value::map({{"tokenizer", "bytes"}}),
                .overwrite = false,
                .pipeline = {.num_workers = 2,
                             .block_bytes = 4000,
                             .piece_bytes = 1500,
                             .most_waiting_bytes = 20'000}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TokenizationState run() {
    return tokenise(request_, [](const TokenizationState&) { return true; });
  }
  /// Stops at the first opportunity after `documents`.
  TokenizationState run_until(int64_t documents) {
    return tokenise(request_, [&](const TokenizationState& s) { return s.documents < documents; });
  }
  std::filesystem::path output(const char* suffix) const {
    return request_.prefix.string() + suffix;
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(request_.prefix.parent_path()))
      names.insert(entry.path().filename().string());
    return names;
  }
  /// The message of the error that `act` throws; empty when it throws none.
  template <class Act>
  static std::string error_of(Act&& act) {
    try {
      act();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  std::filesystem::path folder_;
  const std::vector<std::string> texts_ = mixed_texts(700);
  FakeIndexed indexed_{texts_};
  FakeStreamed streamed_{texts_, 7};
  WrittenTokenizer tokenizer_;
  Tokenization request_;
};

}  // namespace titan::tokenising::tokenize_test
