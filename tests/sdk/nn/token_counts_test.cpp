// Counts of tokens: each training token counts once, summed over the ranks that see different
// tokens.
#include <gtest/gtest.h>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <titan/nn/token_counts.h>
#include <titan/recompute.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::nn {
namespace {

at::Tensor counts_of_rank(int rank) {
  return at::tensor({rank + 1, 10}, at::kLong);
}

TEST(TokenCounts, AreSummedOverAllRanksThatSeeOtherTokens) {
  testing::run_ranks({.pp = 2, .dp_shard = 2, .tp = 2}, [](const dist::Mesh& mesh) {
    const int data = mesh.group("dp").rank(), tensor = mesh.group("tp").rank();
    for (const bool are_copies : {false, true}) {
      Batch batch;
      if (are_copies) batch.copies.num_ranks = 2;
      TokenCounts counts;
      for (int microbatch = 0; microbatch < 3; ++microbatch)
        counts.add(counts_of_rank(are_copies ? data : 2 * data + tensor), batch);
      const at::Tensor sum = counts.sum(mesh);
      const int64_t of_ranks = are_copies ? 1 + 2 : 1 + 2 + 3 + 4, ranks = are_copies ? 2 : 4;
      EXPECT_TRUE(at::equal(sum, at::tensor({3 * of_ranks, 3 * 10 * ranks}, at::kLong))) << sum;
      EXPECT_TRUE(at::equal(counts.sum(mesh), sum)) << "asked twice";
    }
  });
}

/// A scope in which a layer is recomputed.
struct RunsAgain final : RecomputeScope {
  std::vector<at::Tensor> run(const Operation&, const Compute& compute) override {
    return compute();
  }
  bool runs_again() const override { return true; }
};
/// A nested scope in which a layer runs for the first time.
struct RunsWithin final : RecomputeScope {
  std::vector<at::Tensor> run(const Operation&, const Compute& compute) override {
    return compute();
  }
  bool runs_again() const override { return false; }
};

TEST(TokenCounts, TakeTokensOfTrainingOnce) {
  TokenCounts counts;
  counts.add(counts_of_rank(0), {});
  {
    const at::NoGradGuard validation;
    counts.add(counts_of_rank(0), {});
  }
  {
    RunsAgain again;
    RunsWithin within;
    const RecomputeScope::Entry outer(&again);
    counts.add(counts_of_rank(0), {});
    const RecomputeScope::Entry inner(&within);
    counts.add(counts_of_rank(0), {});
    EXPECT_FALSE(is_first_run());
  }
  EXPECT_TRUE(is_first_run());
  EXPECT_TRUE(at::equal(counts.sum(dist::Mesh()), counts_of_rank(0)));
  counts.clear();
  counts.add(counts_of_rank(4), {});
  EXPECT_TRUE(at::equal(counts.sum(dist::Mesh()), counts_of_rank(4)));
}

}  // namespace
}  // namespace titan::nn
