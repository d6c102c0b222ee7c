// Collectives between replica groups: gradients and texts, over real gloo groups of threads.
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>
#include <titan/testing/network.h>

#include "plugins/parallelism/replicas/gradient_sum.h"
#include "plugins/parallelism/replicas/texts.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::replicas {
namespace {

TEST(ReplicaTexts, ReachEveryRankInRankOrder) {
  testing::run_ranks({.dp_replicate = 3}, [](const dist::Mesh& mesh) {
    const dist::Group& group = mesh.group("world");
    const std::vector<std::string> texts = {"", "one \0 two", std::string(5000, 'x')};
    const auto own = static_cast<size_t>(group.rank());
    EXPECT_EQ(all_gather_text(group, texts[own], c10::kCPU), texts);
    EXPECT_EQ(all_gather_text(group, "", c10::kCPU), std::vector<std::string>(3));
    EXPECT_EQ(broadcast_text(group, texts[own], 2, c10::kCPU), texts[2]);
    EXPECT_EQ(broadcast_text(group, texts[own], 0, c10::kCPU), "");
  });
  const dist::Group alone;
  EXPECT_EQ(all_gather_text(alone, "a", c10::kCPU), std::vector<std::string>{"a"});
  EXPECT_EQ(broadcast_text(alone, "a", 0, c10::kCPU), "a");
}

// Of five parameters one is frozen and one has a gradient in one group only.
TEST(ReplicaGradients, AreSummedInBucketsWithMissingOnesAsZeros) {
  for (const int64_t bucket_bytes : {int64_t{1}, int64_t{100}, int64_t{1} << 20})
    testing::run_ranks({.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
      const dist::Group& group = mesh.group("world");
      const double own = 1 + group.rank();
      std::vector<std::unique_ptr<nn::Parameter>> parameters;
      std::vector<nn::Parameter*> all;
      for (int64_t i = 0; i < 5; ++i) {
        parameters.push_back(
            std::make_unique<nn::Parameter>(std::vector<int64_t>{3, 2 + i}, nn::Init{}));
        parameters.back()->set_name("p" + std::to_string(i));
        if (i == 3) parameters.back()->freeze();
        parameters.back()->materialize(c10::kCPU, i == 2 ? at::kDouble : at::kFloat, 1);
        const at::Tensor& shard = parameters.back()->shard();
        if (i < 3 || (i == 4 && group.rank() == 1))
          shard.mutable_grad() = at::full_like(shard, own * static_cast<double>(i + 1));
        all.push_back(parameters.back().get());
      }
      sum_gradients(all, group, bucket_bytes);
      for (int64_t i = 0; i < 3; ++i)
        EXPECT_TRUE(at::equal(all[i]->grad(), at::full_like(all[i]->shard(), 3. * (i + 1)))) << i;
      EXPECT_FALSE(all[3]->grad().defined());
      EXPECT_TRUE(at::equal(all[4]->grad(), at::full_like(all[4]->shard(), 10)));
    });
}

}  // namespace
}  // namespace titan::replicas
