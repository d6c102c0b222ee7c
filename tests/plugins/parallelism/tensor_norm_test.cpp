// Queries and keys that are normalised over all heads of a token, while each rank has only some
// heads.
#include <gtest/gtest.h>

#include <titan/models/transformer.h>

#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan::tensor_test {
namespace {

/// Fewer key heads than query heads; blocks with norms after attention and feed-forward.
std::vector<Layer> layers_with_spanning_norms() {
  return models::build_layers({.dim = 64,
                               .n_layers = 2,
                               .n_heads = 8,
                               .n_kv_heads = 4,
                               .head_dim = 8,
                               .ffn_dim = 171,
                               .vocab_size = 131,
                               .qk_norm = models::QkNorm::of_projections,
                               .norms_after = true});
}

TEST(TensorNorm, OverAllHeadsEqualsOneRank) {
  const StepResult alone = run_alone(layers_with_spanning_norms);
  EXPECT_GT(
      alone.parameters.at("layers.1.attention.q_norm.weight").gradient.abs().max().item<double>(),
      1e-6);
  for (const TensorCase& c : all_tensor_cases()) {
    SCOPED_TRACE(c.text());
    const std::vector<StepResult> ranks = run_cut(layers_with_spanning_norms, c);
    expect_equal_steps(ranks, alone);
    const Held& norm = ranks[1].parameters.at("layers.1.attention.k_norm.weight");
    EXPECT_TRUE(norm.is_cut);
    EXPECT_EQ(norm.slice.sizes, (std::vector<int64_t>{32 / c.tp}));
    EXPECT_EQ(norm.slice.offsets, (std::vector<int64_t>{32 / c.tp}));
  }
}

TEST(TensorNorm, StaysCloseInSixteenBits) {
  const StepResult alone = run_alone(layers_with_spanning_norms);
  for (const StepResult& rank : run_cut(layers_with_spanning_norms, {.tp = 2}, at::kBFloat16))
    for (size_t i = 0; i < alone.losses.size(); ++i)
      EXPECT_NEAR(rank.losses[i] / alone.losses[i], 1, 0.01);
}

}  // namespace
}  // namespace titan::tensor_test
