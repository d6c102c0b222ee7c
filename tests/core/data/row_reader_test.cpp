#include "core/data/row_reader.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/fake_text.h"
#include "core/data/order/source_access.h"

namespace titan::core {
namespace {

using ::testing::HasSubstr;
using titan::testing::ByteTokenizer;
using titan::testing::NumberedDataset;
using titan::testing::ShardedDataset;

constexpr int64_t kVocab = 1 << 20;

std::string row_error_of(RowReader& reader, int reads) {
  TokenizedDocument document;
  try {
    for (int i = 0; i < reads; ++i) reader.next(document);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// A row that reads several weighted data sets.
struct Blend {
  Blend(std::vector<std::pair<const Dataset*, double>> sources, OrderOptions order = {},
        int64_t vocab_size = kVocab) {
    std::vector<BlendedReader> readers;
    for (const auto& [dataset, weight] : sources) {
      const std::string name(1, static_cast<char>('a' + accesses.size()));
      accesses.push_back(access_source(name, *dataset, 1, order));
      readers.push_back({name, weight, accesses.back()->open(0)});
    }
    reader = std::make_unique<RowReader>(std::move(readers), tokenizer, vocab_size);
  }
  ByteTokenizer tokenizer;
  std::vector<std::unique_ptr<SourceAccess>> accesses;
  std::unique_ptr<RowReader> reader;
};

TEST(RowReader, TheRatioOfABlendHoldsInEveryPrefix) {
  // with equal lengths, the share of each source is always within one document of its weight
  const NumberedDataset a(std::vector<int64_t>(7, 10), -1, 1000),
      b(std::vector<int64_t>(50, 10), -1, 2000), c(std::vector<int64_t>(3, 10), -1, 3000);
  Blend blend({{&a, 0.6}, {&b, 0.3}, {&c, 0.1}});
  std::map<int32_t, double> tokens;
  double total = 0;
  for (int i = 0; i < 2000; ++i) {
    TokenizedDocument document;
    ASSERT_TRUE(blend.reader->next(document));
    tokens[document.tokens[0] / 1000] += 10;
    total += 10;
    EXPECT_LE(std::abs(tokens[1] - 0.6 * total), 10 + 1e-9);
    EXPECT_LE(std::abs(tokens[2] - 0.3 * total), 10 + 1e-9);
    EXPECT_LE(std::abs(tokens[3] - 0.1 * total), 10 + 1e-9);
  }
}

TEST(RowReader, WeightsAreSharesOfTokensNotOfDocuments) {
  const NumberedDataset with_long(std::vector<int64_t>(5, 1000), -1, 1000),
      with_short(std::vector<int64_t>(5, 10), -1, 2000);
  Blend blend({{&with_long, 1}, {&with_short, 1}});
  std::map<int32_t, int64_t> tokens;
  TokenizedDocument document;
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(blend.reader->next(document));
    tokens[document.tokens[0] / 1000] += static_cast<int64_t>(document.tokens.size());
  }
  EXPECT_NEAR(static_cast<double>(tokens[1]) / static_cast<double>(tokens[2]), 1, 0.05);
}

TEST(RowReader, EpochsAreCountedPerSource) {
  const NumberedDataset small({10, 10}, -1, 1000), large(std::vector<int64_t>(100, 10), -1, 2000);
  Blend blend({{&small, 1}, {&large, 1}});
  TokenizedDocument document;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(blend.reader->next(document));
  const Value state = blend.reader->state();
  EXPECT_EQ(state.as_list()[0].at("at").at("next"), Value(50)) << "25 epochs of two documents";
  EXPECT_EQ(state.as_list()[1].at("at").at("next"), Value(50)) << "half an epoch";
}

TEST(RowReader, AShuffledEpochReadsEachDocumentOnceAndTheNextInAnotherOrder) {
  const std::vector<int64_t> lengths(100, 1);
  const NumberedDataset indexed(lengths);
  const ShardedDataset streamed(lengths, {10, 30, 5, 0, 55});
  for (const Dataset* dataset :
       {static_cast<const Dataset*>(&indexed), static_cast<const Dataset*>(&streamed)}) {
    Blend blend({{dataset, 1}}, {.shuffle = true, .shuffle_buffer = 16, .seed = 3});
    std::vector<std::vector<int32_t>> epochs(2);
    TokenizedDocument document;
    for (auto& epoch : epochs)
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(blend.reader->next(document));
        epoch.push_back(document.tokens[0] / 10);
      }
    EXPECT_EQ(std::set<int32_t>(epochs[0].begin(), epochs[0].end()).size(), 100u);
    EXPECT_EQ(std::set<int32_t>(epochs[1].begin(), epochs[1].end()).size(), 100u);
    EXPECT_NE(epochs[0], epochs[1]);
    EXPECT_FALSE(std::is_sorted(epochs[0].begin(), epochs[0].end()));
  }
}

TEST(RowReader, AnIdTheModelHasNoRoomForNamesDocumentAndPlace) {
  const NumberedDataset dataset({3, 3, 3});
  Blend blend({{&dataset, 1}}, {}, 20);
  EXPECT_THAT(row_error_of(*blend.reader, 3),
              ::testing::AllOf(HasSubstr("numbered:2: token 22 at position 2"),
                               HasSubstr("which has 20"), HasSubstr("while reading source 'a'")));
}

TEST(RowReader, TheFirstIdBehindTheVocabularyIsOneTooMany) {
  const NumberedDataset dataset({1, 1, 1});  // ids 0, 10 and 20
  Blend with_room({{&dataset, 1}}, {}, 21), without({{&dataset, 1}}, {}, 20);
  EXPECT_EQ(row_error_of(*with_room.reader, 3), "no error");
  EXPECT_THAT(row_error_of(*without.reader, 3), HasSubstr("token 20 at position 0"));
}

TEST(RowReader, ASourceWithoutAnyTokenIsAnErrorNotAnEndlessSearch) {
  const NumberedDataset empty_documents({0, 0, 0});
  Blend blend({{&empty_documents, 1}});
  EXPECT_THAT(row_error_of(*blend.reader, 1), HasSubstr("hold no token"));
  const ShardedDataset empty_shards({}, {0, 0, 0});
  Blend shards({{&empty_shards, 1}});
  EXPECT_THAT(row_error_of(*shards.reader, 1), HasSubstr("holds a document"));
  const NumberedDataset nothing({});
  EXPECT_THROW(Blend({{&nothing, 1}}), Error);
}

}  // namespace
}  // namespace titan::core
