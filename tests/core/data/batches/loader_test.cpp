#include "core/data/batches/loader.h"

#include <gtest/gtest.h>

#include "core/data/fake_chat.h"
#include "core/data/fake_text.h"

namespace titan::core {
namespace {

using titan::testing::ByteTokenizer;
using titan::testing::NumberedDataset;
using titan::testing::TextDataset;

template <class T>
std::vector<int64_t> to_vector(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<T>(), flat.data_ptr<T>() + flat.numel()};
}

LoaderOptions options(int64_t num_rows, int64_t seq_len) {
  LoaderOptions options;
  options.feed.num_rows = options.feed.num_own_rows = options.rows_per_microbatch = num_rows;
  options.feed.vocab_size = 1 << 20;
  options.feed.packing.window = seq_len + 1;
  return options;
}

/// Tokens and labels of the rows of `num_steps` steps, one list per global row, as read by ranks
/// that own `rows_per_rank` rows each.
std::vector<std::vector<int64_t>> read_rows(int64_t num_rows, int64_t rows_per_rank,
                                            int64_t rows_per_microbatch, int num_steps) {
  std::vector<int64_t> lengths;
  for (int64_t d = 0; d < 40; ++d) lengths.push_back(3 + d * 7 % 11);
  const NumberedDataset dataset(lengths);
  const ByteTokenizer tokenizer;
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(num_rows));
  for (int64_t first = 0; first < num_rows; first += rows_per_rank) {
    LoaderOptions of_rank = options(num_rows, 8);
    of_rank.feed.first_row = first;
    of_rank.feed.num_own_rows = rows_per_rank;
    of_rank.rows_per_microbatch = rows_per_microbatch;
    Loader loader({{"a", 1, &dataset}}, tokenizer, of_rank);
    for (int step = 0; step < num_steps; ++step) {
      const StepBatches batches = loader.next_step();
      int64_t row = first;
      for (const Batch& batch : batches.microbatches) {
        EXPECT_EQ(batch.places.first_row, row);
        for (int64_t i = 0; i < batch.tokens.size(0); ++i, ++row)
          for (const at::Tensor& part : {batch.tokens, batch.labels}) {
            const auto values = to_vector<int64_t>(part[i]);
            rows[static_cast<size_t>(row)].insert(rows[static_cast<size_t>(row)].end(),
                                                  values.begin(), values.end());
          }
      }
    }
  }
  return rows;
}

TEST(Loader, LabelsAreTheNextTokens) {
  const NumberedDataset dataset({9, 9});
  const ByteTokenizer tokenizer;
  Loader loader({{"a", 1, &dataset}}, tokenizer, options(2, 4));
  const StepBatches step = loader.next_step();
  ASSERT_EQ(step.microbatches.size(), 1u);
  const Batch& batch = step.microbatches[0];
  EXPECT_EQ(to_vector<int64_t>(batch.tokens), (std::vector<int64_t>{0, 1, 2, 3, 10, 11, 12, 13}));
  EXPECT_EQ(to_vector<int64_t>(batch.labels), (std::vector<int64_t>{1, 2, 3, 4, 11, 12, 13, 14}));
  EXPECT_FALSE(batch.positions.defined());
  EXPECT_FALSE(batch.documents.defined());
  EXPECT_EQ(step.num_local_valid_tokens, 8);
  EXPECT_EQ(step.num_local_text_bytes, 0) << "tokens have none";
}

TEST(Loader, EveryLayoutReadsTheSameTokensAtEveryStep) {
  const auto one_rank = read_rows(8, 8, 8, 12);
  EXPECT_EQ(one_rank, read_rows(8, 8, 2, 12)) << "accumulation";
  EXPECT_EQ(one_rank, read_rows(8, 4, 4, 12)) << "2 ranks";
  EXPECT_EQ(one_rank, read_rows(8, 1, 1, 12)) << "8 ranks";
}

TEST(Loader, PositionsRestartAndDocumentsAreNumberedWhenTheyAreIsolated) {
  const NumberedDataset dataset({3, 2, 9});
  const ByteTokenizer tokenizer;
  LoaderOptions isolated = options(1, 6);
  isolated.isolates_documents = true;
  isolated.feed.packing.labels_cross_documents = false;
  Loader loader({{"a", 1, &dataset}}, tokenizer, isolated);
  StepBatches step = loader.next_step();
  const Batch& batch = step.microbatches[0];
  constexpr int64_t kNone = Batch::kIgnoredLabel;
  EXPECT_EQ(to_vector<int64_t>(batch.tokens), (std::vector<int64_t>{0, 1, 2, 10, 11, 20}));
  EXPECT_EQ(to_vector<int64_t>(batch.labels), (std::vector<int64_t>{1, 2, kNone, 11, kNone, 21}));
  EXPECT_EQ(to_vector<int64_t>(batch.positions), (std::vector<int64_t>{0, 1, 2, 0, 1, 0}));
  EXPECT_EQ(to_vector<int32_t>(batch.documents), (std::vector<int64_t>{0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(step.num_local_valid_tokens, 4);
  step = loader.next_step();
  EXPECT_EQ(to_vector<int64_t>(step.microbatches[0].positions),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5}))
      << "the rest of a document begins at 0 again";
}

TEST(Loader, PaddingIsNoTargetAndADocumentOfItsOwn) {
  const TextDataset dataset({"abc", "de"});
  const ByteTokenizer tokenizer;
  LoaderOptions padded = options(1, 8);
  padded.feed.packing.packing = Packing::best_fit;
  padded.feed.packing.once = padded.feed.order.once = true;
  padded.isolates_documents = true;
  Loader loader({{"a", 1, &dataset}}, tokenizer, padded);
  const StepBatches step = loader.next_step();
  constexpr int64_t kNone = Batch::kIgnoredLabel;
  EXPECT_EQ(to_vector<int64_t>(step.microbatches[0].labels),
            (std::vector<int64_t>{'b', 'c', 'd', 'e', kNone, kNone, kNone, kNone}));
  EXPECT_EQ(to_vector<int32_t>(step.microbatches[0].documents),
            (std::vector<int64_t>{0, 0, 0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(to_vector<bool>(step.microbatches[0].is_padding),
            (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1}))
      << "the last token predicts nothing";
  EXPECT_EQ(step.num_local_valid_tokens, 4);
  EXPECT_EQ(step.num_local_text_bytes, 4);
  const StepBatches after = loader.next_step();
  EXPECT_EQ(after.num_local_valid_tokens, 0) << "the data has ended";
  EXPECT_EQ(to_vector<int64_t>(after.microbatches[0].labels), std::vector<int64_t>(8, kNone));
  EXPECT_EQ(after.microbatches[0].num_tokens(), 0);
}

TEST(Loader, WhatIsNotLearnedOfAConversationHasNoLabel) {
  using titan::testing::completions;
  const titan::testing::WrittenDataset dataset({completions({{"ab", "cd"}, {"ab", "e"}})});
  const titan::testing::ChatTokenizer tokenizer({.eos = 1001});
  LoaderOptions chats = options(1, 10);
  chats.feed.packing.packing = Packing::best_fit;
  chats.feed.packing.once = chats.feed.order.once = true;
  chats.feed.conversations.max_tokens = 11;
  chats.isolates_documents = true;
  Loader loader({{"a", 1, &dataset}}, tokenizer, chats);
  const StepBatches step = loader.next_step();
  const Batch& batch = step.microbatches[0];
  constexpr int64_t kNone = Batch::kIgnoredLabel;
  EXPECT_EQ(to_vector<int64_t>(batch.tokens),
            (std::vector<int64_t>{'a', 'b', 'c', 'd', 1001, 'a', 'b', 'e', 1001, 0}));
  EXPECT_EQ(to_vector<int64_t>(batch.labels),
            (std::vector<int64_t>{kNone, 'c', 'd', 1001, kNone, kNone, 'e', 1001, kNone, kNone}));
  EXPECT_EQ(to_vector<int32_t>(batch.documents),
            (std::vector<int64_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 2}));
  EXPECT_EQ(to_vector<int64_t>(batch.positions),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 0}));
  EXPECT_EQ(step.num_local_valid_tokens, 5);
  EXPECT_EQ(step.num_local_text_bytes, 3);
}

/// Tokens of one step, a list per row.
std::vector<std::vector<int64_t>> tokens_of(Loader& loader) {
  std::vector<std::vector<int64_t>> rows;
  for (const Batch& batch : loader.next_step().microbatches)
    for (int64_t i = 0; i < batch.tokens.size(0); ++i)
      rows.push_back(to_vector<int64_t>(batch.tokens[i]));
  return rows;
}

// Replica groups: one leaves after step 3, another takes its rows over and gives them back.
TEST(Loader, TakesRowsOverFromAnOlderPosition) {
  std::vector<int64_t> lengths;
  for (int64_t d = 0; d < 40; ++d) lengths.push_back(3 + d * 7 % 11);
  const NumberedDataset dataset(lengths);
  const ByteTokenizer tokenizer;
  LoaderOptions whole = options(4, 8);
  whole.rows_per_microbatch = 1;
  Loader reference({{"a", 1, &dataset}}, tokenizer, whole);
  std::vector<std::vector<std::vector<int64_t>>> expected;
  for (int step = 0; step < 8; ++step) expected.push_back(tokens_of(reference));
  const auto expect_rows = [&](Loader& loader, size_t step, size_t first, size_t count) {
    const auto rows = tokens_of(loader);
    ASSERT_EQ(rows.size(), count);
    for (size_t row = 0; row < count; ++row)
      EXPECT_EQ(rows[row], expected[step][first + row]) << step << " " << row;
  };

  LoaderOptions first_half = whole, second_half = whole;
  first_half.feed.num_own_rows = second_half.feed.num_own_rows = 2;
  second_half.feed.first_row = 2;
  Loader a({{"a", 1, &dataset}}, tokenizer, first_half);
  Loader b({{"a", 1, &dataset}}, tokenizer, second_half);
  expect_rows(a, 0, 0, 2);
  expect_rows(b, 0, 2, 2);
  FeedState known = a.state();
  for (auto& position : b.state().streams) known.streams.push_back(position);
  const FeedState after_one = known;
  a.read_rows(0, 2, known);
  expect_rows(a, 1, 0, 2);
  expect_rows(a, 2, 0, 2);
  EXPECT_EQ(a.state().streams.size(), 4u);  // also those of b, as of step 1

  const FeedState after_three = a.state();
  expect_rows(a, 3, 0, 2);  // a step that is begun anew
  a.read_rows(0, 4, after_three);
  expect_rows(a, 3, 0, 4);
  expect_rows(a, 4, 0, 4);
  const FeedState after_five = a.state();
  b.read_rows(1, 1, after_five);
  expect_rows(b, 5, 1, 1);
  a.read_rows(2, 2, after_five);
  expect_rows(a, 5, 2, 2);
}

}  // namespace
}  // namespace titan::core
