#include "core/data/row_packer.h"

#include <gtest/gtest.h>

#include "core/data/fake_text.h"

namespace titan::core {
namespace {

using titan::testing::ByteTokenizer;
using titan::testing::NumberedDataset;
using Tokens = std::vector<int32_t>;

RowPacker packer(const NumberedDataset& dataset, const Tokenizer& tokenizer, RowShard shard,
                 int64_t window) {
  return RowPacker(dataset.open(shard), tokenizer, shard, window);
}

std::string error_of(RowPacker& packer) {
  try {
    packer.next();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(RowPacker, FramesEachDocumentAndCutsWithoutOverlap) {
  const NumberedDataset dataset({3, 2});
  const ByteTokenizer tokenizer({.bos = 1000, .eos = 1001});
  RowPacker row = packer(dataset, tokenizer, {}, 4);
  EXPECT_EQ(row.next(), (Tokens{1000, 0, 1, 2}));
  EXPECT_EQ(row.next(), (Tokens{1001, 1000, 10, 11}));
  EXPECT_EQ(row.next(), (Tokens{1001, 1000, 0, 1})) << "the next epoch follows without a gap";
}

TEST(RowPacker, AddsNoFrameThatTheTokenizerDoesNotHave) {
  const NumberedDataset dataset({3, 2});
  const ByteTokenizer tokenizer;
  RowPacker row = packer(dataset, tokenizer, {}, 5);
  EXPECT_EQ(row.next(), (Tokens{0, 1, 2, 10, 11}));
}

TEST(RowPacker, ReadsOnlyTheDocumentsOfItsRow) {
  const NumberedDataset dataset({2, 2, 2, 2});
  const ByteTokenizer tokenizer;
  RowPacker row = packer(dataset, tokenizer, {.row = 1, .num_rows = 2}, 4);
  EXPECT_EQ(row.next(), (Tokens{10, 11, 30, 31}));
}

TEST(RowPacker, ContinuesExactlyFromItsState) {
  const NumberedDataset dataset({7, 5, 3, 9, 4});
  const ByteTokenizer tokenizer({.bos = 1000, .eos = 1001});
  for (int steps = 0; steps < 12; ++steps) {
    RowPacker straight = packer(dataset, tokenizer, {}, 6);
    for (int i = 0; i < steps; ++i) straight.next();
    RowPacker resumed = packer(dataset, tokenizer, {}, 6);
    resumed.restore(
        parse_json(to_json(straight.state())));  // through text, as a checkpoint stores it
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(straight.next(), resumed.next()) << "after " << steps << " steps";
  }
}

TEST(RowPacker, RefusesARowWithoutDocuments) {
  const NumberedDataset dataset({5, 5});
  const ByteTokenizer tokenizer;
  RowPacker row = packer(dataset, tokenizer, {.row = 2, .num_rows = 3}, 4);
  EXPECT_NE(error_of(row).find("row 2 of 3 of the global batch has no document"), std::string::npos)
      << error_of(row);
}

TEST(RowPacker, RefusesAnEpochShorterThanOneSequence) {
  const NumberedDataset dataset({5, 6});
  const ByteTokenizer tokenizer;
  RowPacker row = packer(dataset, tokenizer, {}, 12);
  EXPECT_NE(
      error_of(row).find("holds only 11 tokens in its 2 documents, less than one sequence of 12"),
      std::string::npos);
}

}  // namespace
}  // namespace titan::core
