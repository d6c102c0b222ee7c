// The tokens dataset: borders of documents, and files that change.
// tests/referee/token_files_referee.py reads files written by other software.
#include "plugins/datasets/tokens/tokens_dataset.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "plugins/datasets/tokens/token_type.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

using Ids = std::vector<int32_t>;

std::string as_uint16(const Ids& ids) {
  std::string bytes;
  for (int32_t id : ids) {
    bytes += static_cast<char>(id & 255);
    bytes += static_cast<char>(id >> 8);
  }
  return bytes;
}

std::vector<Ids> documents_of(const TokensDataset& dataset) {
  std::vector<Ids> documents;
  Document document;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, document);
    EXPECT_TRUE(document.is_tokenised);
    documents.push_back(document.tokens);
  }
  return documents;
}

TEST(TokenType, DecodesEveryTypeAndFindsWhatIsNoId) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  for (TokenType type : {TokenType::uint8, TokenType::int8, TokenType::int16, TokenType::uint16,
                         TokenType::int32, TokenType::uint32, TokenType::int64}) {
    const size_t width = width_of(type);
    for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{127}, int64_t{255}, int64_t{32767},
                          int64_t{65535}, kLargest, kLargest + 1, int64_t{-1}}) {
      std::string bytes(1 + 3 * width, '\0');  // at an odd address
      std::memcpy(bytes.data() + 1 + width, &value, width);
      const int64_t stored = decode_id(type, bytes.data() + 1 + width);
      Ids ids(3);
      const size_t good = decode_ids(type, bytes.data() + 1, 3, ids.data());
      const bool fits = stored >= 0 && stored <= kLargest;
      ASSERT_EQ(good, fits ? 3U : 1U) << name_of(type) << " " << value;
      if (fits) {
        EXPECT_EQ(ids[1], stored);
      }
    }
  }
}

TEST(TokensDataset, FindsMarksOnBothSidesOfABlock) {
  constexpr int32_t kMark = 7;
  std::mt19937 random(1);
  for (size_t length : {65535, 65536, 65537, 131072, 200000}) {
    Ids ids(length);
    for (int32_t& id : ids) id = 100 + static_cast<int32_t>(random() % 50000);
    for (size_t at :
         {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{131071}, length - 1})
      if (at < length) ids[at] = kMark;
    TestFolder folder;
    const std::string path = folder.write("a.bin", as_uint16(ids));
    constexpr TokenFormat kRaw = TokenFormat::raw;
    const TokensDataset by_end({.format = kRaw, .document_end = kMark}, {.path = path});
    const TokensDataset by_start({.format = kRaw, .document_start = kMark}, {.path = path});
    Ids all;
    for (const Ids& document : documents_of(by_end)) {
      ASSERT_FALSE(document.empty());
      EXPECT_EQ(document.back(), kMark);
      EXPECT_EQ(std::count(document.begin(), document.end(), kMark), 1);
      all.insert(all.end(), document.begin(), document.end());
    }
    EXPECT_EQ(all, ids) << length;
    all.clear();
    for (const Ids& document : documents_of(by_start)) {
      ASSERT_FALSE(document.empty());
      EXPECT_EQ(document.front(), kMark);
      EXPECT_EQ(std::count(document.begin(), document.end(), kMark), 1);
      all.insert(all.end(), document.begin(), document.end());
    }
    EXPECT_EQ(all, ids) << length;
  }
}

TEST(TokensDataset, KeepsTheTokensThatNoMarkFrames) {
  TestFolder folder;
  folder.write("a.bin", as_uint16({1, 2, 9, 3, 9, 4}));
  folder.write("b.bin", as_uint16({5}));
  const std::string path = folder.path().string();
  const auto documents = [&](TokensOptions options) {
    options.format = TokenFormat::raw;
    return documents_of(TokensDataset(options, {.path = path}));
  };
  EXPECT_EQ(documents({.document_end = 9}), (std::vector<Ids>{{1, 2, 9}, {3, 9}, {4}, {5}}));
  EXPECT_EQ(documents({.document_start = 9}), (std::vector<Ids>{{1, 2}, {9, 3}, {9, 4}, {5}}));
  EXPECT_EQ(documents({.document_end = 5}), (std::vector<Ids>{{1, 2, 9, 3, 9, 4}, {5}}));
}

// Half of a float32 would be read as a valid id, so the file or the user must give the dtype.
TEST(TokensDataset, TakesNoFileForBareIdsUnlessItIsSaid) {
  TestFolder folder;
  std::string weights;
  for (int i = 0; i < 5000; ++i) {
    const float value = 0.02f * static_cast<float>(i % 71 - 35);
    weights.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const std::string path = folder.write("pytorch_model.bin", "PK\x03\x04" + weights);
  for (const TokensOptions& options :
       {TokensOptions{}, TokensOptions{.document_end = 7}, TokensOptions{.chunk_tokens = 3}}) {
    const Error error = error_of([&] { TokensDataset(options, {.path = path}); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_TRUE(holds(error.what(), path + "' has no known header or suffix"));
    EXPECT_TRUE(holds(error.what(), "set format = \"raw\" in [dataset.tokens]"));
  }
  const std::string tokens = folder.write("train.bin", as_uint16({1, 2, 9, 3}));
  EXPECT_EQ(TokensDataset({.dtype = "uint16", .chunk_tokens = 3}, {.path = tokens}).size(), 2);
  EXPECT_EQ(TokensDataset({.format = TokenFormat::raw}, {.path = tokens}).size(), 1);
}

TEST(TokensDataset, CutsAllTokensIntoChunks) {
  TestFolder folder;
  Ids ids(1000);
  std::iota(ids.begin(), ids.end(), 100);
  const std::string path = folder.write("a.bin", as_uint16(ids));
  for (int64_t chunk : {1, 7, 999, 1000, 1001, 8192}) {
    const TokensDataset dataset({.format = TokenFormat::raw, .chunk_tokens = chunk},
                                {.path = path});
    ASSERT_EQ(dataset.size(), (1000 + chunk - 1) / chunk);
    Ids all;
    for (const Ids& document : documents_of(dataset))
      all.insert(all.end(), document.begin(), document.end());
    EXPECT_EQ(all, ids);
  }
  const TokensDataset dataset({.format = TokenFormat::raw, .chunk_tokens = 7}, {.path = path});
  EXPECT_EQ(dataset.place(142), "a.bin: document 142 (token 994)");
}

TEST(TokensDataset, SaysNumbersOfABrokenIndexAsTheyAre) {
  const TestFolder folder;
  const std::string path = folder.write("a.ds", as_uint16({1, 2}));
  folder.write("a.ds.index", std::string("\2\0\0\0\0\0\0\0", 8) + std::string(8, '\xff'));
  const Error error = error_of([&] { TokensDataset({}, {.path = path}); });
  EXPECT_TRUE(holds(error.what(), "a.ds.index' says at byte 8 that a document ends at token -1"));
}

TEST(TokensDataset, RefusesFilesThatChangeAfterwards) {
  TestFolder folder;
  const std::string path = folder.write("a.bin", as_uint16(Ids(100, 5)));
  const TokensDataset dataset({.format = TokenFormat::raw, .chunk_tokens = 10}, {.path = path});
  std::filesystem::resize_file(path, 150);
  Document document;
  const Error error = error_of([&] { dataset.read(9, document); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), path));
  EXPECT_TRUE(holds(error.what(), "from 200 to 150"));
}

TEST(TokensDataset, FingerprintTellsHowDocumentsArePartedButNotWhere) {
  TestFolder folder, other;
  const std::string content = as_uint16({1, 2, 9, 3, 9, 4});
  const std::string path = folder.write("a.bin", content);
  const auto fingerprint = [](const std::string& where, TokensOptions options) {
    options.format = TokenFormat::raw;
    return TokensDataset(options, {.path = where}).fingerprint();
  };
  const std::string chunks = fingerprint(path, {});
  EXPECT_EQ(fingerprint(other.write("a.bin", content), {}), chunks);
  EXPECT_NE(fingerprint(other.write("b.bin", content), {}), chunks);
  EXPECT_NE(fingerprint(path, {.chunk_tokens = 2}), chunks);
  EXPECT_NE(fingerprint(path, {.document_end = 9}), chunks);
  EXPECT_NE(fingerprint(path, {.document_start = 9}), fingerprint(path, {.document_end = 9}));
}

}  // namespace
}  // namespace titan::datasets
