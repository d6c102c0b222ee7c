#include "core/data/loader.h"

#include <gtest/gtest.h>

#include "core/data/fake_text.h"

namespace titan::core {
namespace {

using titan::testing::ByteTokenizer;
using titan::testing::NumberedDataset;

std::vector<int64_t> to_vector(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

NumberedDataset some_documents() {
  std::vector<int64_t> lengths;
  for (int64_t d = 0; d < 40; ++d) lengths.push_back(3 + d * 7 % 11);
  return NumberedDataset(lengths);
}

/// Tokens of the rows of `num_steps` steps, one list per global row, as ranks that own
/// `rows_per_rank` rows read them.
std::vector<std::vector<int64_t>> read_rows(int64_t num_rows, int64_t rows_per_rank,
                                            int64_t rows_per_microbatch, int num_steps) {
  const NumberedDataset dataset = some_documents();
  const ByteTokenizer tokenizer({.bos = 1000, .eos = 1001});
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(num_rows));
  for (int64_t first = 0; first < num_rows; first += rows_per_rank) {
    Loader loader(dataset, tokenizer,
                  {.seq_len = 8,
                   .num_rows = num_rows,
                   .first_row = first,
                   .num_own_rows = rows_per_rank,
                   .rows_per_microbatch = rows_per_microbatch});
    for (int step = 0; step < num_steps; ++step) {
      const StepBatches batches = loader.next_step();
      int64_t row = first;
      for (const Batch& batch : batches.microbatches)
        for (int64_t i = 0; i < batch.tokens.size(0); ++i, ++row) {
          const auto tokens = to_vector(batch.tokens[i]);
          rows[static_cast<size_t>(row)].insert(rows[static_cast<size_t>(row)].end(),
                                                tokens.begin(), tokens.end());
        }
    }
  }
  return rows;
}

TEST(Loader, LabelsAreTheNextTokens) {
  const NumberedDataset dataset({9, 9});
  const ByteTokenizer tokenizer;
  Loader loader(dataset, tokenizer,
                {.seq_len = 4, .num_rows = 2, .num_own_rows = 2, .rows_per_microbatch = 2});
  const StepBatches step = loader.next_step();
  ASSERT_EQ(step.microbatches.size(), 1u);
  EXPECT_EQ(to_vector(step.microbatches[0].tokens),
            (std::vector<int64_t>{0, 1, 2, 3, 10, 11, 12, 13}));
  EXPECT_EQ(to_vector(step.microbatches[0].labels),
            (std::vector<int64_t>{1, 2, 3, 4, 11, 12, 13, 14}));
  EXPECT_EQ(step.num_local_valid_tokens, 8);
}

TEST(Loader, EveryLayoutReadsTheSameTokensAtEveryStep) {
  const auto one_rank = read_rows(8, 8, 8, 12);
  EXPECT_EQ(one_rank, read_rows(8, 8, 2, 12)) << "accumulation";
  EXPECT_EQ(one_rank, read_rows(8, 4, 4, 12)) << "2 ranks";
  EXPECT_EQ(one_rank, read_rows(8, 1, 1, 12)) << "8 ranks";
}

TEST(Loader, ContinuesFromItsStateWhateverWasReadAhead) {
  const NumberedDataset dataset = some_documents();
  const ByteTokenizer tokenizer;
  const LoaderOptions options = {
      .seq_len = 8, .num_rows = 4, .num_own_rows = 4, .rows_per_microbatch = 2};
  Loader straight(dataset, tokenizer, options);
  for (int i = 0; i < 7; ++i) straight.next_step();
  Loader resumed(dataset, tokenizer, options);
  resumed.restore(parse_json(to_json(straight.state())));
  for (int i = 0; i < 9; ++i) {
    const StepBatches a = straight.next_step(), b = resumed.next_step();
    for (size_t m = 0; m < a.microbatches.size(); ++m)
      EXPECT_EQ(to_vector(a.microbatches[m].tokens), to_vector(b.microbatches[m].tokens));
    EXPECT_EQ(straight.state(), resumed.state());
  }
}

TEST(Loader, RefusesAStateOfAnotherGlobalBatch) {
  const NumberedDataset dataset = some_documents();
  const ByteTokenizer tokenizer;
  const Loader four(dataset, tokenizer,
                    {.seq_len = 8, .num_rows = 4, .num_own_rows = 4, .rows_per_microbatch = 2});
  Loader two(dataset, tokenizer,
             {.seq_len = 8, .num_rows = 2, .num_own_rows = 2, .rows_per_microbatch = 2});
  EXPECT_THROW(two.restore(four.state()), Error);
}

TEST(Loader, AnErrorOfTheReadingThreadComesAtTheStepItBelongsTo) {
  const NumberedDataset dataset({20, 20, 20, 20, 20, 20}, /*fails_at=*/4);
  const ByteTokenizer tokenizer;
  Loader loader(dataset, tokenizer,
                {.seq_len = 19, .num_rows = 1, .num_own_rows = 1, .rows_per_microbatch = 1});
  for (int i = 0; i < 4; ++i) EXPECT_NO_THROW(loader.next_step()) << i;
  EXPECT_THROW(loader.next_step(), Error);
  EXPECT_THROW(loader.next_step(), Error) << "and at every later one";
}

TEST(Loader, RefusesFewerDocumentsThanRows) {
  const NumberedDataset dataset({9, 9, 9});
  const ByteTokenizer tokenizer;
  EXPECT_THROW(Loader(dataset, tokenizer,
                      {.seq_len = 4, .num_rows = 4, .num_own_rows = 4, .rows_per_microbatch = 2}),
               Error);
}

TEST(Loader, StartTellsThatNotEvenOneStepCanBeRead) {
  const NumberedDataset dataset({4, 4});
  const ByteTokenizer tokenizer;
  Loader loader(dataset, tokenizer,
                {.seq_len = 100, .num_rows = 1, .num_own_rows = 1, .rows_per_microbatch = 1});
  EXPECT_THROW(loader.start(), Error);
}

TEST(Loader, StartDoesNotTakeTheFirstStepAway) {
  const NumberedDataset dataset({9, 9});
  const ByteTokenizer tokenizer;
  Loader loader(dataset, tokenizer,
                {.seq_len = 4, .num_rows = 1, .num_own_rows = 1, .rows_per_microbatch = 1});
  loader.start();
  EXPECT_EQ(to_vector(loader.next_step().microbatches[0].tokens),
            (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(Loader, EndsWhileTheReaderWaits) {
  const NumberedDataset dataset = some_documents();
  const ByteTokenizer tokenizer;
  for (int i = 0; i < 20; ++i) {
    Loader loader(dataset, tokenizer,
                  {.seq_len = 8, .num_rows = 2, .num_own_rows = 2, .rows_per_microbatch = 2});
    if (i % 2) loader.next_step();
  }
}

}  // namespace
}  // namespace titan::core
