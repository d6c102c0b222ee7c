#include "core/data/block_shuffle.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace titan::core {
namespace {

/// Documents 0, 1, 2, ...: each is one token.
class CountingReader final : public SourceReader {
 public:
  bool next(Document& document) override {
    document.is_tokenised = true;
    document.tokens = {static_cast<int32_t>(next_++)};
    return true;
  }
  Value position() const override { return Value(next_); }
  void seek(const Value& position) override { next_ = position.as_integer(); }
  int64_t epoch() const override { return 0; }
  std::string place() const override { return "counted"; }

 private:
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
  BlockShuffle shuffle(std::make_unique<CountingReader>(), kSize, /*key=*/3);
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
  BlockShuffle whole(std::make_unique<CountingReader>(), kSize, 3);
  next_block(whole, 3 * kSize + 5);
  const Value position = whole.position();
  BlockShuffle resumed(std::make_unique<CountingReader>(), kSize, 3);
  resumed.seek(position);
  EXPECT_EQ(next_block(resumed, 20), next_block(whole, 20));
}

}  // namespace
}  // namespace titan::core
