// The named parts of a loss, summed over chunks, microbatches and ranks.
#include "core/train/loss/loss_parts.h"

#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

std::vector<at::Tensor> part_sums(double a, double b) {
  return {at::scalar_tensor(a, at::kFloat), at::scalar_tensor(b, at::kDouble)};
}

TEST(LossParts, AddUpTheChunksOfTheLastRun) {
  const dist::Mesh mesh;
  LossParts parts({"nll", "z_loss"});
  parts.begin_step();
  parts.take(part_sums(100, 1));
  parts.begin_step();
  parts.take(part_sums(1, 10));
  parts.take(part_sums(2, 20));
  const std::map<std::string, double> sums = parts.sums(mesh, c10::kCPU);
  EXPECT_EQ(sums, (std::map<std::string, double>{{"nll", 3}, {"z_loss", 30}}));
  const std::vector<Scalar> scalars = parts.scalars("loss_metrics/", sums, 4);
  ASSERT_EQ(scalars.size(), 2u);
  EXPECT_EQ(scalars[0].tag, "loss_metrics/nll");
  EXPECT_EQ(scalars[0].value, 0.75);
  EXPECT_EQ(scalars[1].tag, "loss_metrics/z_loss");
  EXPECT_EQ(scalars[1].value, 7.5);
}

TEST(LossParts, AreNoneWithoutNames) {
  LossParts parts;
  parts.begin_step();
  parts.take({});
  EXPECT_TRUE(parts.sums(dist::Mesh(), c10::kCPU).empty());
  EXPECT_TRUE(parts.scalars("loss_metrics/", {}, 0).empty());
}

TEST(LossParts, CountTokensOfAllRanksOnce) {
  // two replicas, a pipeline whose last rank has the head, and two ranks that compute the same head
  testing::run_ranks({.pp = 2, .dp_replicate = 2, .tp = 2}, [](const dist::Mesh& mesh) {
    LossParts parts({"nll"});
    parts.begin_step();
    if (mesh.group("pp").rank() == 1)
      parts.take({at::scalar_tensor(1.0 + mesh.batch_rank(), at::kDouble)});
    EXPECT_EQ(parts.sums(mesh, c10::kCPU).at("nll"), 1 + 2);
  });
}

}  // namespace
}  // namespace titan::core
