// The megatron dataset: valid and invalid indexes, and files that change while they are read.
// tests/referee/token_files_referee.py reads files written by other software.
#include "plugins/datasets/megatron/megatron_dataset.h"

#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plugins/datasets/megatron/megatron_index.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// An index of uint16 ids. `documents`: the lengths of the sequences of each document.
std::string index_of(const std::vector<std::vector<int32_t>>& documents, bool with_modes = false) {
  std::string lengths, starts, entries = bytes_of(int64_t{0});
  int64_t num_sequences = 0, start = 0;
  for (const auto& document : documents) {
    for (int32_t length : document) {
      lengths += bytes_of(length);
      starts += bytes_of(start);
      start += 2 * length;
      ++num_sequences;
    }
    entries += bytes_of(num_sequences);
  }
  return std::string("MMIDIDX\0\0", 9) + bytes_of(uint64_t{1}) + '\x08' + bytes_of(num_sequences) +
         bytes_of(static_cast<uint64_t>(documents.size() + 1)) + lengths + starts + entries +
         std::string(with_modes ? num_sequences : 0, '\0');
}

const std::vector<std::vector<int32_t>> kDocuments = {{3}, {}, {1, 0, 4}, {2}};
constexpr uint64_t kBinBytes = 20;

TEST(MegatronIndex, SaysWhereDocumentsAre) {
  for (bool with_modes : {false, true}) {
    const MegatronIndex index =
        parse_megatron_index(index_of(kDocuments, with_modes), kBinBytes, "a.idx");
    ASSERT_EQ(index.num_documents(), 4);
    EXPECT_EQ(index.num_sequences(), 5);
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (int64_t i = 0; i < 4; ++i)
      ranges.emplace_back(index.document(i).begin, index.document(i).end);
    EXPECT_EQ(ranges,
              (std::vector<std::pair<uint64_t, uint64_t>>{{0, 6}, {6, 6}, {6, 16}, {16, 20}}));
  }
}

TEST(MegatronIndex, ReadsMoreThanOneBlockOfEntries) {
  const std::vector<std::vector<int32_t>> documents(100000, {1, 2});
  const MegatronIndex index = parse_megatron_index(index_of(documents), 600000, "a.idx");
  EXPECT_EQ(index.document(99999).begin, 599994U);
  EXPECT_EQ(index.document(99999).end, 600000U);
  const std::string text = index_of(documents);
  std::string wrong = text;
  wrong[34 + 4 * 150000] = 5;  // the length of sequence 150000 was 1
  const Error error = error_of([&] { parse_megatron_index(wrong, 600000, "a.idx"); });
  EXPECT_TRUE(holds(error.message(), "sequence 150001")) << error.message();
}

TEST(MegatronIndex, RefusesEveryCutOne) {
  const std::string whole = index_of(kDocuments);
  for (size_t length = 0; length < whole.size(); ++length) {
    const Error error =
        error_of([&] { parse_megatron_index(whole.substr(0, length), kBinBytes, "cut.idx"); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << length;
    EXPECT_TRUE(holds(error.message(), "'cut.idx'")) << length;
  }
  for (size_t more : {1, 4, 6, 8, 20})
    error_of([&] { parse_megatron_index(whole + std::string(more, '\0'), kBinBytes, "a.idx"); });
}

TEST(MegatronIndex, ReadsOrRefusesEveryChangedByte) {
  const std::string whole = index_of(kDocuments);
  int num_read = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      try {
        const MegatronIndex index = parse_megatron_index(changed, kBinBytes, "a.idx");
        uint64_t end = 0;
        for (int64_t i = 0; i < index.num_documents(); ++i) {
          EXPECT_EQ(index.document(i).begin, end);
          end = index.document(i).end;
        }
        EXPECT_EQ(end, kBinBytes);
        ++num_read;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data);
        EXPECT_TRUE(holds(error.message(), "a.idx"));
      }
    }
  }
  EXPECT_GT(num_read, 0);  // each document begins at a different place
  EXPECT_LT(num_read, 30);
}

/// Two pairs of files: with documents of one id, then of two.
class MegatronFiles : public ::testing::Test {
 protected:
  MegatronFiles() {
    write("a", {{1}, {1}, {1}}, {10, 11, 12});
    write("b", {{2}, {1, 1}}, {20, 21, 22, 23});
  }
  void write(const std::string& prefix, const std::vector<std::vector<int32_t>>& documents,
             const std::vector<uint16_t>& ids) {
    std::string bytes;
    for (uint16_t id : ids) bytes += bytes_of(id);
    folder_.write(prefix + ".bin", bytes);
    folder_.write(prefix + ".idx", index_of(documents));
  }
  MegatronDataset open(const std::string& name) const {
    return MegatronDataset({.path = folder_.at(name)});
  }

  TestFolder folder_;
};

std::vector<int32_t> tokens_of(const MegatronDataset& dataset, int64_t index) {
  Document document;
  document.text = "old";
  dataset.read(index, document);
  EXPECT_TRUE(document.is_tokenised);
  EXPECT_TRUE(document.text.empty());
  return document.tokens;
}

TEST_F(MegatronFiles, AreReadInAnyOrder) {
  const MegatronDataset dataset({.path = folder_.path().string()});
  ASSERT_EQ(dataset.size(), 5);
  EXPECT_EQ(tokens_of(dataset, 4), (std::vector<int32_t>{22, 23}));
  EXPECT_EQ(tokens_of(dataset, 0), (std::vector<int32_t>{10}));
  EXPECT_EQ(tokens_of(dataset, 3), (std::vector<int32_t>{20, 21}));
  EXPECT_EQ(dataset.place(3), "b.bin: document 0");
}

TEST_F(MegatronFiles, AreReadBySeveralThreads) {
  const MegatronDataset dataset({.path = folder_.path().string()});
  std::vector<std::thread> threads;
  std::vector<int64_t> sums(4);
  for (int64_t& sum : sums)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i)
        for (int32_t id : tokens_of(dataset, i % 5)) sum += id;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 400 * (10 + 11 + 12 + 20 + 21 + 22 + 23)));
}

TEST_F(MegatronFiles, ThatShrinkWhileTheyAreReadAreErrors) {
  const MegatronDataset dataset = open("b");
  EXPECT_EQ(tokens_of(dataset, 1), (std::vector<int32_t>{22, 23}));
  std::filesystem::resize_file(folder_.at("b.bin"), 5);
  EXPECT_EQ(tokens_of(dataset, 0), (std::vector<int32_t>{20, 21}));
  const Error error = error_of([&] { tokens_of(dataset, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "b.bin"));
  EXPECT_TRUE(holds(error.what(), "while reading b.bin: document 1"));
  std::filesystem::resize_file(folder_.at("b.idx"), 40);
  const Error other = error_of([&] { tokens_of(dataset, 0); });
  EXPECT_EQ(other.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(other.what(), "b.idx"));
}

TEST_F(MegatronFiles, HaveAFingerprintOfTheirContentNotOfTheirPlace) {
  const std::string before = open("a").fingerprint();
  EXPECT_EQ(open("a.bin").fingerprint(), before);
  TestFolder other;
  other.write("a.bin", folder_.read("a.bin"));
  other.write("a.idx", folder_.read("a.idx"));
  EXPECT_EQ(MegatronDataset({.path = other.at("a")}).fingerprint(), before);
  write("a", {{1}, {2}}, {10, 11, 12});
  EXPECT_NE(open("a").fingerprint(), before);
}

}  // namespace
}  // namespace titan::datasets
