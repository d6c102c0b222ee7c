#include <titan/ops/document_attention.h>

#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/error.h>

#include "ops_testing.h"

namespace titan::ops::testing::document_attention_test {
namespace {

/// Three rows of 40 tokens: one document, several, and one token each at the end.
Tensor some_documents() {
  Tensor documents = at::zeros({3, 40}, at::kInt);
  documents[1].narrow(0, 7, 33).add_(1);
  documents[1].narrow(0, 8, 32).add_(1);
  documents[1].narrow(0, 30, 10).add_(1);
  for (int64_t t = 35; t < 40; ++t) documents[2].narrow(0, t, 40 - t).add_(1);
  return documents;
}

Function fused(const Tensor& documents) {
  return [=](const Tensors& in) -> Tensors {
    return {document_attention(in[0], in[1], in[2], documents)};
  };
}

/// With the whole matrix of scores and a mask.
Function masked(const Tensor& documents) {
  return [=](const Tensors& in) -> Tensors {
    const int64_t share = in[0].size(1) / in[1].size(1), seq_len = in[0].size(2);
    const Tensor k = in[1].repeat_interleave(share, 1), v = in[2].repeat_interleave(share, 1);
    const Tensor future = at::ones({seq_len, seq_len}, at::kBool).triu(1);
    const Tensor other = documents.unsqueeze(2).ne(documents.unsqueeze(1));
    const Tensor scores =
        in[0].matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(in[0].size(3)));
    const Tensor hidden = future.unsqueeze(0).logical_or(other).unsqueeze(1);
    return {at::softmax(scores.masked_fill(hidden, -INFINITY), -1).matmul(v)};
  };
}

Tensors inputs(int64_t rows, int64_t heads, int64_t kv, int64_t seq_len, int64_t hd) {
  return {random({rows, seq_len, heads, hd}).transpose(1, 2),
          random({rows, seq_len, kv, hd}).transpose(1, 2),
          random({rows, seq_len, kv, hd}).transpose(1, 2)};
}

TEST(DocumentAttention, IsAsExactAsAMaskedSoftmaxForwardAndBackward) {
  const Tensor documents = some_documents();
  expect_as_exact_as(masked(documents), fused(documents), inputs(3, 4, 2, 40, 16), at::kFloat,
                     {.factor = 4, .roundings = 4, .absolute = 2e-6});
}

TEST(DocumentAttention, TakesValuesOfAnotherWidth) {
  const Tensor documents = some_documents();
  Tensors in = inputs(3, 4, 2, 40, 16);
  in[2] = random({3, 40, 2, 12}).transpose(1, 2);
  expect_as_exact_as(masked(documents), fused(documents), in, at::kFloat,
                     {.factor = 4, .roundings = 4, .absolute = 2e-6});
}

TEST(DocumentAttention, GivesOnTheMetaDeviceWhatItGivesElsewhere) {
  expect_meta_like_real(fused(some_documents()), inputs(3, 4, 2, 40, 16));
}

TEST(DocumentAttention, DoesNotDependOnTheNumberOfThreads) {
  expect_same_for_any_number_of_threads(fused(some_documents()), inputs(3, 4, 2, 40, 16));
}

TEST(DocumentAttention, KeepsTheRulesOfGraphs) {
  expect_graph_rules(fused(some_documents()), inputs(3, 4, 2, 40, 16), /*changed=*/0);
}

TEST(DocumentAttention, EachDocumentIsWhatItIsAlone) {
  const Tensor documents = some_documents();
  const Tensors in = inputs(3, 4, 2, 40, 16);
  const Tensor whole = fused(documents)(in)[0];
  const auto piece = [&](const Tensor& x) { return x.narrow(0, 1, 1).narrow(2, 8, 22); };
  const Tensor alone = attention(piece(in[0]), piece(in[1]), piece(in[2]));
  EXPECT_TRUE(piece(whole).equal(alone));
}

TEST(DocumentAttention, CutsEachRowAtItsOwnDocumentsWhateverTheOthersHold) {
  const Tensors in = inputs(3, 4, 2, 40, 16);
  const Tensor documents = some_documents();
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{0, 1, 2}, {1, 2, 0}}) {
    const Tensor place = at::tensor(order, at::kLong);
    const Tensors sorted = {in[0].index_select(0, place), in[1].index_select(0, place),
                            in[2].index_select(0, place)};
    const Tensor all = fused(documents.index_select(0, place))(sorted)[0];
    for (int64_t row = 0; row < 3; ++row) {
      const auto alone = [&](const Tensor& x) { return x.narrow(0, order[row], 1); };
      const Tensor expected =
          fused(alone(documents))({alone(in[0]), alone(in[1]), alone(in[2])})[0];
      EXPECT_TRUE(all.narrow(0, row, 1).equal(expected)) << "row " << order[row];
    }
  }
}

TEST(DocumentAttention, RowsOfOneDocumentEachAreTheCausalAttentionBitForBit) {
  const Tensors in = inputs(3, 4, 2, 40, 16);
  EXPECT_TRUE(fused(at::zeros({3, 40}, at::kInt))(in)[0].equal(attention(in[0], in[1], in[2])));
}

TEST(DocumentAttention, RefusesNumbersThatDoNotFit) {
  const Tensors in = inputs(3, 4, 2, 40, 16);
  for (const Tensor& wrong :
       {at::zeros({3, 39}, at::kInt), at::zeros({2, 40}, at::kInt), at::zeros({3, 40}, at::kLong)})
    EXPECT_THROW(fused(wrong)(in), Error);
}

}  // namespace
}  // namespace titan::ops::testing::document_attention_test
