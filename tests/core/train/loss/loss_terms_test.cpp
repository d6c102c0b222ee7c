// The normaliser of a step's loss.
#include "core/train/loss/loss_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

/// One term for each row that has a label of 1.
class RowsOfOnes final : public SequenceLoss {
 public:
  RowsLoss of_sequences(const at::Tensor& log_likelihoods, const Batch&) override {
    return {.sum = log_likelihoods.sum()};
  }
  int64_t num_terms(const Batch& batch) const override {
    return batch.labels.eq(1).any(1).sum().item<int64_t>();
  }
};

/// An executor that divides by tokens, with likelihoods of 1.
class OneForEachToken final : public StepExecutor {
 public:
  explicit OneForEachToken(LossPerTerm& loss) : loss_(loss) {}
  void connect(StepContext) override {}
  StepLoss forward_backward(const StepBatches& batches) override { return forward(batches); }
  StepLoss forward(const StepBatches& batches) override {
    double sum = 0;
    for (const Batch& batch : batches.microbatches)
      sum +=
          loss_.of_sequences(at::ones(batch.labels.sizes(), at::kDouble), batch).sum.item<double>();
    return {.normalized_sum = sum / static_cast<double>(batches.num_valid_tokens)};
  }

 private:
  LossPerTerm& loss_;
};

/// Two microbatches of two rows of five tokens. In the first, `num_terms` rows are terms.
StepBatches some_batches(int64_t num_terms) {
  StepBatches batches{.num_valid_tokens = 40, .num_local_valid_tokens = 20};
  for (const int64_t terms : {num_terms, int64_t{0}}) {
    const at::Tensor labels = at::full({2, 5}, 0, at::kLong);
    labels.narrow(0, 0, terms).fill_(1);
    batches.microbatches.push_back({.labels = labels});
  }
  return batches;
}

TEST(LossTerms, AreTokensOfALossOfTokens) {
  const LossTerms terms;
  EXPECT_EQ(terms.local(some_batches(2)), 20);
  EXPECT_EQ(terms.global(some_batches(2), dist::Mesh(), c10::kCPU), 40);
}

TEST(LossTerms, AreAddedUpOverMicrobatchesAndRanks) {
  testing::run_ranks({.dp_replicate = 2, .tp = 2}, [](const dist::Mesh& mesh) {
    const auto loss = std::make_shared<RowsOfOnes>();
    const auto per_term = std::make_shared<LossPerTerm>(loss);
    const LossTerms terms(loss);
    const StepBatches batches = some_batches(1 + mesh.batch_rank());
    EXPECT_EQ(terms.local(batches), 1 + mesh.batch_rank());
    EXPECT_EQ(terms.global(batches, mesh, c10::kCPU), 3);
    OneForEachToken executor(*per_term);
    TermCounter counter(terms, per_term, mesh, c10::kCPU);
    counter.wrap(executor);
    EXPECT_NEAR(counter.forward_backward(batches).normalized_sum, 20.0 / 3, 1e-12);
    EXPECT_NEAR(counter.forward(batches).normalized_sum, 20.0 / 3, 1e-12);
  });
}

TEST(LossTerms, OfNoneTheLossIsZero) {
  const auto loss = std::make_shared<RowsOfOnes>();
  const auto per_term = std::make_shared<LossPerTerm>(loss);
  const dist::Mesh mesh;
  OneForEachToken executor(*per_term);
  TermCounter counter(LossTerms(loss), per_term, mesh, c10::kCPU);
  counter.wrap(executor);
  EXPECT_EQ(counter.forward_backward(some_batches(0)).normalized_sum, 0);
}

TEST(LossTerms, OfSimulatedRanksAreTokens) {
  StepBatches batches = some_batches(1);
  for (Batch& batch : batches.microbatches) batch.labels = batch.labels.to(c10::kMeta);
  const LossTerms terms(std::make_shared<RowsOfOnes>());
  EXPECT_EQ(terms.local(batches), 20);
  EXPECT_EQ(terms.global(batches, dist::Mesh(), c10::kMeta), 40);
}

}  // namespace
}  // namespace titan::core
