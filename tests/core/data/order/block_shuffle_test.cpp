#include "core/data/order/block_shuffle.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/fake_text.h"
#include "core/data/order/permutation.h"
#include "core/data/order/source_access.h"

namespace titan::core {
namespace {

using titan::testing::numbered_document;
using titan::testing::ShardedDataset;

/// Documents 0, 1, 2, ... of one token each. An epoch has `epoch_size` documents.
class CountingReader final : public SourceReader {
 public:
  explicit CountingReader(int64_t epoch_size = 1 << 20) : epoch_size_(epoch_size) {}
  bool next(Document& document) override {
    document.is_tokenised = true;
    document.tokens = {static_cast<int32_t>(next_++)};
    return true;
  }
  Value position() const override { return Value(next_); }
  void seek(const Value& position) override { next_ = position.as_integer(); }
  int64_t epoch() const override { return std::max<int64_t>(0, next_ - 1) / epoch_size_; }
  std::string place() const override { return "counted"; }

 private:
  int64_t epoch_size_;
  int64_t next_ = 0;
};

std::vector<int32_t> next_block(BlockShuffle& shuffle, int64_t size) {
  std::vector<int32_t> block;
  Document document;
  for (int64_t i = 0; i < size && shuffle.next(document); ++i) block.push_back(document.tokens[0]);
  return block;
}

TEST(BlockShuffle, MixesEachBlockInAnOrderOfItsOwn) {
  constexpr int32_t kSize = 16, kBlocks = 20;
  BlockShuffle shuffle(std::make_unique<CountingReader>(), {.num_documents = kSize}, /*key=*/3);
  std::set<std::vector<int32_t>> orders;
  for (int32_t block = 0; block < kBlocks; ++block) {
    std::vector<int32_t> order = next_block(shuffle, kSize);
    for (int32_t& document : order) document -= block * kSize;
    std::vector<int32_t> sorted = order, all(kSize);
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all) << "block " << block;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), static_cast<size_t>(kBlocks));
}

TEST(BlockShuffle, GoesOnWithTheOrderOfItsBlockAndWithTheNextOnes) {
  constexpr int64_t kSize = 8;
  BlockShuffle whole(std::make_unique<CountingReader>(), {.num_documents = kSize}, 3);
  next_block(whole, 3 * kSize + 5);
  const Value position = whole.position();
  BlockShuffle resumed(std::make_unique<CountingReader>(), {.num_documents = kSize}, 3);
  resumed.seek(position);
  EXPECT_EQ(next_block(resumed, 20), next_block(whole, 20));
}

TEST(BlockShuffle, EndsABlockWithItsEpoch) {
  BlockShuffle shuffle(std::make_unique<CountingReader>(/*epoch_size=*/10), {.num_documents = 4},
                       3);
  for (int32_t begin = 0, epoch = 0; epoch < 6; ++epoch)
    for (const int32_t size : {4, 4, 2}) {
      std::vector<int32_t> block = next_block(shuffle, size);
      EXPECT_EQ(shuffle.epoch(), epoch);
      std::sort(block.begin(), block.end());
      std::vector<int32_t> expected(static_cast<size_t>(size));
      std::iota(expected.begin(), expected.end(), begin);
      EXPECT_EQ(block, expected);
      begin += size;
    }
}

// A checkpoint from a version whose blocks crossed the end of an epoch: documents 8 to 11 with
// epochs of 10, one of which was already read.
TEST(BlockShuffle, GoesOnFromAPositionOfVersion1AndEndsTheNextBlocksWithTheirEpoch) {
  constexpr uint64_t kKey = 3;
  std::vector<int32_t> begun;
  const Permutation order(4, mix(kKey, 2));
  for (uint64_t i = 1; i < 4; ++i) begun.push_back(static_cast<int32_t>(8 + order(i)));

  const Value saved = Value::map({{"start", 8}, {"block", 2}, {"given", 1}});
  BlockShuffle resumed(std::make_unique<CountingReader>(10), {.num_documents = 4}, kKey);
  resumed.seek(saved);
  EXPECT_EQ(resumed.position(), saved);
  std::vector<int32_t> found = next_block(resumed, 2);
  BlockShuffle again(std::make_unique<CountingReader>(10), {.num_documents = 4}, kKey);
  again.seek(resumed.position());  // a position within the unfinished block
  found.push_back(next_block(again, 1).at(0));
  EXPECT_EQ(found, begun);
  for (const std::vector<int32_t>& expected :
       {std::vector<int32_t>{12, 13, 14, 15}, {16, 17, 18, 19}, {20, 21, 22, 23}}) {
    std::vector<int32_t> block = next_block(again, 4);
    std::sort(block.begin(), block.end());
    EXPECT_EQ(block, expected);
  }
}

TEST(BlockShuffle, GoesOnFromThePositionBeforeTheFirstDocumentOfABlockOfVersion1) {
  BlockShuffle resumed(std::make_unique<CountingReader>(10), {.num_documents = 4}, 3);
  resumed.seek(Value::map({{"start", 8}, {"block", 2}, {"given", 0}}));
  EXPECT_EQ(next_block(resumed, 1).at(0), static_cast<int32_t>(8 + Permutation(4, mix(3, 2))(0)));
}

TEST(BlockShuffle, APositionOfALaterVersionSaysWhatToDo) {
  BlockShuffle shuffle(std::make_unique<CountingReader>(), {.num_documents = 4}, 3);
  Value position = shuffle.position();
  position["version"] = 3;
  try {
    shuffle.seek(position);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("is of version 3"));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("exclude_from_loading = [\"dataloader\"]"));
  }
}

/// How often each document was read, by epoch.
using Counts = std::vector<std::map<int32_t, int64_t>>;

struct DrawnStream {
  explicit DrawnStream(int seed) : random(static_cast<unsigned>(seed)) {
    const int64_t num_shards = 1 + below(6);
    for (int64_t shard = 0; shard < num_shards; ++shard) {
      shard_sizes.push_back(shard ? below(40) : 1 + below(40));
      num_documents += shard_sizes.back();
    }
    num_rows = 1 + below(9);
    order = {.shuffle = true, .shuffle_buffer = 1 + below(50), .seed = random()};
    if (below(3) == 0) order.max_shared_block_bytes = static_cast<size_t>(below(200));
  }
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  }

  std::mt19937 random;
  std::vector<int64_t> shard_sizes;
  int64_t num_documents = 0, num_rows = 1;
  OrderOptions order;
};

/// Reads each row to the end of epoch `num_epochs` - 1. Ranks own two rows and sometimes restart
/// from their saved positions.
Counts count(DrawnStream& drawn, int64_t num_epochs) {
  const ShardedDataset dataset(std::vector<int64_t>(static_cast<size_t>(drawn.num_documents), 1),
                               drawn.shard_sizes);
  Counts counts(static_cast<size_t>(num_epochs));
  for (int64_t first = 0; first < drawn.num_rows; first += 2) {
    const int64_t num_own = std::min<int64_t>(2, drawn.num_rows - first);
    std::vector<Value> positions;
    for (bool is_done = false; !is_done;) {
      const auto access = access_source("a", dataset, drawn.num_rows, drawn.order);
      std::vector<std::unique_ptr<SourceReader>> rows;
      for (int64_t row = 0; row < num_own; ++row) rows.push_back(access->open(first + row));
      for (size_t row = 0; row < positions.size(); ++row) rows[row]->seek(positions[row]);
      std::vector<bool> has_ended(rows.size());
      const int64_t num_reads = 1 + drawn.below(60);
      for (int64_t i = 0; i < num_reads; ++i)
        for (size_t row = 0; row < rows.size(); ++row) {
          Document document;
          if (has_ended[row]) continue;
          EXPECT_TRUE(rows[row]->next(document));
          const int64_t epoch = rows[row]->epoch();
          has_ended[row] = epoch >= num_epochs;
          if (!has_ended[row]) ++counts[static_cast<size_t>(epoch)][document.tokens[0] / 10];
        }
      is_done = std::find(has_ended.begin(), has_ended.end(), false) == has_ended.end();
      positions.clear();
      for (const auto& row : rows) positions.push_back(parse_json(to_json(row->position())));
    }
  }
  return counts;
}

TEST(BlockShuffle, GivesEveryDocumentOnceAnEpochWhateverRowsBufferShardsAndResumes) {
  for (int seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DrawnStream drawn(seed);
    const Counts counts = count(drawn, 3);
    for (const auto& epoch : counts) {
      EXPECT_EQ(epoch.size(), static_cast<size_t>(drawn.num_documents)) << "documents that came";
      for (const auto& [document, times] : epoch) EXPECT_EQ(times, 1) << "document " << document;
    }
  }
}

/// Counts the documents that are read or skipped in one file of documents of 4000 bytes.
class CountedFile final : public StreamedDataset {
 public:
  explicit CountedFile(int64_t size) : size_(size) {}
  int64_t num_shards() const override { return 1; }
  std::unique_ptr<DocumentStream> open(int64_t) const override {
    return std::make_unique<Stream>(*this);
  }
  std::string fingerprint() const override { return "counted"; }
  mutable int64_t num_passed = 0;

 private:
  class Stream final : public DocumentStream {
   public:
    explicit Stream(const CountedFile& file) : file_(file) {}
    bool next(Document& document) override {
      if (!skip()) return false;
      document = numbered_document(next_ - 1, 1000);
      return true;
    }
    bool skip() override {
      if (next_ == file_.size_) return false;
      ++file_.num_passed;
      return ++next_;
    }
    Value position() const override { return Value(next_); }
    void seek(const Value& position) override {
      for (next_ = 0; next_ < position.as_integer();) skip();  // as in a compressed file
    }
    std::string place() const override { return "counted"; }

   private:
    const CountedFile& file_;
    int64_t next_ = 0;
  };
  int64_t size_;
};

TEST(BlockShuffle, ABlockForEachOfManyRowsComesFromOnePassOverTheirFile) {
  constexpr int64_t kRows = 64, kBytes = 4 << 20;
  const CountedFile file(100'000);
  const OrderOptions order = {
      .shuffle = true, .shuffle_buffer = 1000, .max_shared_block_bytes = kBytes};
  std::vector<Value> positions;
  for (int run = 0; run < 2; ++run) {
    SCOPED_TRACE(run ? "a resumed run" : "a new run");
    file.num_passed = 0;
    const auto access = access_source("a", file, kRows, order);
    std::vector<std::unique_ptr<SourceReader>> rows;
    for (int64_t row = 0; row < kRows; ++row) rows.push_back(access->open(row));
    for (size_t row = 0; row < positions.size(); ++row) rows[row]->seek(positions[row]);
    Document document;
    for (const auto& row : rows) ASSERT_TRUE(row->next(document));
    const int64_t behind = run * 24 * kRows;  // documents of finished blocks
    EXPECT_LE(file.num_passed, behind + kBytes / 4000 + 2 * kRows);
    for (int i = 0; i < 30; ++i)
      for (const auto& row : rows) ASSERT_TRUE(row->next(document));
    positions.clear();
    for (const auto& row : rows) positions.push_back(row->position());
  }
}

}  // namespace
}  // namespace titan::core
