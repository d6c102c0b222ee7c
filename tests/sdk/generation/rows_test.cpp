#include <titan/generation/rows.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan {
namespace {

at::Tensor integers(std::vector<int64_t> values, int64_t rows) {
  return at::tensor(values).view({rows, -1});
}

std::string refusal(const std::vector<SequenceRow>& rows, int64_t seq_len) {
  try {
    batch_of_rows(rows, seq_len);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    return e.what();
  }
  return "";
}

TEST(RowsOfSequences, HaveLabelsForAnswersAndPaddingBehindThem) {
  const Batch batch = batch_of_rows(
      {{.ids = {5, 6, 7, 8, 9}, .prompt_size = 2}, {.ids = {3, 4}, .prompt_size = 1}}, 4);
  constexpr int64_t kNone = Batch::kIgnoredLabel;
  EXPECT_TRUE(at::equal(batch.tokens, integers({5, 6, 7, 8, 3, 0, 0, 0}, 2)));
  EXPECT_TRUE(at::equal(batch.labels, integers({kNone, 7, 8, 9, 4, kNone, kNone, kNone}, 2)));
  EXPECT_TRUE(at::equal(batch.positions, integers({0, 1, 2, 3, 0, 1, 2, 3}, 2)));
  EXPECT_TRUE(at::equal(batch.is_padding, integers({0, 0, 0, 0, 0, 1, 1, 1}, 2).to(at::kBool)));
  EXPECT_TRUE(at::equal(batch.documents, integers({0, 0, 0, 0, 0, 0, 0, 0}, 2).to(at::kInt)));
  EXPECT_FALSE(batch.reference.defined());
  EXPECT_EQ(batch.num_tokens(), 5);
}

TEST(RowsOfSequences, CarryNumbersAtTheTokenWhoseLabelTheyAreOf) {
  const Batch batch =
      batch_of_rows({{.ids = {5, 6, 7}, .prompt_size = 1, .given = {{1, 2}, {3, 4}}}}, 3);
  EXPECT_TRUE(
      at::equal(batch.reference, at::tensor({1.F, 2.F, 3.F, 4.F, 0.F, 0.F}).view({1, 3, 2})));
}

TEST(RowsOfSequences, AreRefusedWithTheirNumberAndTheLimit) {
  EXPECT_NE(refusal({{.ids = {1, 2, 3, 4}, .prompt_size = 1}}, 2).find("row 0 has 4 ids"),
            std::string::npos);
  EXPECT_NE(refusal({{.ids = {1, 2}, .prompt_size = 2}}, 4).find("a prompt and an answer"),
            std::string::npos);
  EXPECT_NE(refusal({{.ids = {1, 2, 3}, .prompt_size = 1, .given = {{1}}}}, 4)
                .find("given 1 vectors for 2 tokens"),
            std::string::npos);
  EXPECT_NE(refusal(std::vector<SequenceRow>{}, 4).find("no rows"), std::string::npos);
}

}  // namespace
}  // namespace titan
