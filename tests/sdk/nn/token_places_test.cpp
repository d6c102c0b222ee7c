// Token positions within the global batch of a step, and forced even load of experts by position.
#include <algorithm>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <titan/nn/router.h>

namespace titan::nn {
namespace {

/// Rows 5 and 6 of a global batch with rows of 8 tokens.
Batch two_rows() {
  Batch batch;
  batch.tokens = at::zeros({2, 8}, at::kLong);
  batch.places.first_row = 5;
  return batch;
}

const at::Tensor& numbers_of_two_rows() {
  static const at::Tensor numbers = at::arange(40, 56).view({2, 8});
  return numbers;
}

TEST(TokenPlaces, NumberTokensOfTheGlobalBatch) {
  const Batch whole = two_rows();
  EXPECT_TRUE(at::equal(whole.places.numbers(2, 8, c10::kCPU), numbers_of_two_rows()));
  EXPECT_TRUE(at::equal(whole.rows(1, 1).places.numbers(1, 8, c10::kCPU),
                        numbers_of_two_rows().narrow(0, 1, 1)));
}

TEST(TokenPlaces, NumberTokensOfAPart) {
  Batch whole = two_rows();
  for (const int64_t number : {0, 1, 2, 3}) {
    whole.places.part = {.number = number, .count = 4};
    EXPECT_TRUE(at::equal(whole.places.numbers(2, 2, c10::kCPU),
                          numbers_of_two_rows().narrow(1, 2 * number, 2)));
  }
}

TEST(TokenPlaces, NumberTokensOfASequenceThatIsCutTwice) {
  Batch share = two_rows();
  share.places.row_length = 8;
  share.places.in_row = at::tensor({2, 3, 4, 5}, at::kLong);  // of a rank in the middle
  share.places.part = {.number = 1, .count = 2};
  EXPECT_TRUE(
      at::equal(share.places.numbers(2, 2, c10::kCPU), numbers_of_two_rows().narrow(1, 4, 2)));
}

at::Tensor forced_choices(const Batch& batch, int64_t rows, int64_t length) {
  Router router({.dim = 2, .num_experts = 5, .top_k = 3, .forces_balance = true}, nullptr);
  router.set_names("m");
  router.visit_parameters([](Parameter& p) { p.materialize(c10::kCPU, at::kFloat, 1); });
  return router.route(at::zeros({rows, length, 2}), batch).experts.view({rows, length, 3});
}

TEST(TokenPlaces, ForceTheSameChoicesOfATokenWhoeverHoldsIt) {
  Batch batch = two_rows();
  const at::Tensor whole = forced_choices(batch, 2, 8);
  EXPECT_TRUE(at::equal(whole.flatten(), at::arange(40 * 3, 56 * 3).remainder(5)));
  batch.places.part = {.number = 1, .count = 2};
  EXPECT_TRUE(at::equal(forced_choices(batch, 2, 4), whole.narrow(1, 4, 4)));
  batch.places.row_length = 8;
  batch.places.in_row = at::tensor({0, 1, 6, 7}, at::kLong);
  EXPECT_TRUE(
      at::equal(forced_choices(batch.rows(1, 1), 1, 2), whole.narrow(0, 1, 1).narrow(1, 6, 2)));
}

}  // namespace
}  // namespace titan::nn
