#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>

#include "plugins/parallelism/semi_sync/exchange.h"
#include "plugins/parallelism/semi_sync/fragments.h"
#include "plugins/parallelism/semi_sync/quantized_rows.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::semi_sync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kNames = {
    "tok_embeddings.weight", "layers.0.wq.weight", "layers.0.wo.weight", "layers.1.wq.weight",
    "layers.10.wq.weight",   "norm.weight",        "output.weight"};

TEST(SemiSyncFragments, CutsLikeAPipeline) {
  EXPECT_THAT(fragments_by_layers(kNames, 1), ElementsAre(0, 0, 0, 0, 0, 0, 0));
  // five parts: the embedding, three layers, norm and output
  EXPECT_THAT(fragments_by_layers(kNames, 2), ElementsAre(0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(fragments_by_layers(kNames, 3), ElementsAre(0, 0, 0, 1, 1, 2, 2));
  EXPECT_THAT(fragments_by_layers(kNames, 5), ElementsAre(0, 1, 1, 2, 3, 4, 4));
  EXPECT_THAT(fragments_by_layers({"a.x", "a.y", "b.x"}, 2), ElementsAre(0, 0, 1));
  try {
    fragments_by_layers(kNames, 6);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("num_fragments = 6, but the model has 5 parts"));
  }
}

TEST(SemiSyncFragments, TakesNamedModules) {
  EXPECT_THAT(fragments_by_modules(kNames, {{"layers.1", "output"},
                                            {"tok_embeddings", "layers.0", "layers.10", "norm"}}),
              ElementsAre(1, 1, 1, 0, 1, 1, 0));
  try {
    fragments_by_modules(kNames, {{"tok_embeddings", "layers.0", "layers.2"},
                                  {"layers.0.wo", "layers.1", "norm", "output"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("fragment 0 names 'layers.2', which the model does not"));
    EXPECT_THAT(error.what(), HasSubstr("'layers.0.wo.weight' is in the fragments 0 and 1"));
    EXPECT_THAT(error.what(), HasSubstr("'layers.10.wq.weight' is in no fragment"));
  }
}

TEST(SemiSyncRows, Int8KeepsHalfAStepOfEachRow) {
  EXPECT_EQ(bytes_of_row(1), 8);
  EXPECT_EQ(bytes_of_row(4), 8);
  EXPECT_EQ(bytes_of_row(5), 12);
  const at::Tensor rows = at::tensor({1.0, -127.0, 63.4, 0.0, 0.0, 0.0}, at::kFloat).view({2, 3});
  const at::Tensor bytes = to_quantized_rows(rows, RowType::int8);
  EXPECT_EQ(bytes.sizes(), (std::vector<int64_t>{2, 8}));
  EXPECT_TRUE(at::equal(from_quantized_rows(bytes, 3, RowType::int8),
                        at::tensor({1.0, -127.0, 63.0, 0.0, 0.0, 0.0}, at::kFloat).view({2, 3})));
  const at::Tensor drawn = at::rand({50, 33}, at::kFloat) - 0.5;
  const at::Tensor found =
      from_quantized_rows(to_quantized_rows(drawn, RowType::int8), 33, RowType::int8);
  EXPECT_TRUE(
      ((found - drawn).abs() <= drawn.abs().amax({1}, true) * (0.5001 / 127)).all().item<bool>());
}

TEST(SemiSyncRows, Float8KeepsThreeBitsOfMantissa) {
  // 448 is the largest number, 2^-9 the smallest; 17 is halfway between 16 and 18, 19 between 18
  // and 20
  const at::Tensor rows =
      at::tensor({448.0, -17.0, 19.0, 0.002, 0.0, 0.0, 0.0, 0.0}, at::kFloat).view({2, 4});
  const at::Tensor bytes = to_quantized_rows(rows, RowType::float8_e4m3);
  EXPECT_EQ(bytes.sizes(), (std::vector<int64_t>{2, 8}));
  EXPECT_TRUE(at::equal(bytes.narrow(1, 4, 4),
                        at::tensor({0x7e, 0xd8, 0x5a, 0x01, 0, 0, 0, 0}, at::kByte).view({2, 4})));
  EXPECT_TRUE(at::equal(
      from_quantized_rows(bytes, 4, RowType::float8_e4m3),
      at::tensor({448.0, -16.0, 20.0, 0.001953125, 0.0, 0.0, 0.0, 0.0}, at::kFloat).view({2, 4})));
  const at::Tensor drawn = at::rand({50, 33}, at::kFloat) - 0.5;
  const at::Tensor found =
      from_quantized_rows(to_quantized_rows(drawn, RowType::float8_e4m3), 33, RowType::float8_e4m3);
  const at::Tensor largest = drawn.abs().amax({1}, true);
  EXPECT_TRUE(((found - drawn).abs() <= drawn.abs() * (1.001 / 16) + largest * (0.001 / 448))
                  .all()
                  .item<bool>());
}

/// The tensors of a rank: shapes that neither ranks nor buckets divide.
std::vector<at::Tensor> tensors_of(int rank, at::ScalarType dtype) {
  std::vector<at::Tensor> tensors;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{5, 7}, {3}, {0}, {2, 3, 5}, {}}) {
    at::Tensor tensor = at::zeros(shape, dtype);
    tensor.copy_((at::arange(tensor.numel(), at::kDouble).view(shape) * (rank + 0.1)).sin());
    tensors.push_back(tensor);
  }
  return tensors;
}

TEST(SemiSyncExchange, SumsInTheOrderOfRanksWhateverTheBuckets) {
  constexpr int kRanks = 3;
  std::vector<at::Tensor> expected = tensors_of(0, at::kFloat);
  for (int rank = 1; rank < kRanks; ++rank)
    for (size_t i = 0; i < expected.size(); ++i) expected[i].add_(tensors_of(rank, at::kFloat)[i]);
  for (const int64_t bucket_bytes : {1, 64, 1 << 20})
    titan::testing::run_ranks({.dp_replicate = kRanks}, [&](const dist::Mesh& mesh) {
      const dist::Group& group = mesh.group("world");
      const std::vector<at::Tensor> tensors = tensors_of(group.rank(), at::kFloat);
      sum_over(group, tensors, bucket_bytes);
      for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(at::equal(tensors[i], expected[i]));
    });
}

TEST(SemiSyncExchange, QuantisedSumsAreEqualOnAllRanksAndNear) {
  constexpr int kRanks = 3;
  std::vector<at::Tensor> exact = tensors_of(0, at::kDouble);
  for (int rank = 1; rank < kRanks; ++rank)
    for (size_t i = 0; i < exact.size(); ++i) exact[i].add_(tensors_of(rank, at::kDouble)[i]);
  for (const auto& [type, half_step] :
       {std::pair{RowType::int8, 0.501 / 127}, std::pair{RowType::float8_e4m3, 1.001 / 16}}) {
    std::mutex mutex;
    std::vector<std::vector<at::Tensor>> all;
    titan::testing::run_ranks({.dp_replicate = kRanks}, [&](const dist::Mesh& mesh) {
      const dist::Group& group = mesh.group("world");
      const std::vector<at::Tensor> tensors = tensors_of(group.rank(), at::kDouble);
      sum_over_quantized(group, tensors, type);
      const std::lock_guard lock(mutex);
      all.push_back(tensors);
    });
    for (const std::vector<at::Tensor>& tensors : all)
      for (size_t i = 0; i < exact.size(); ++i) {
        EXPECT_TRUE(at::equal(tensors[i], all.front()[i]));
        if (exact[i].numel() == 0) continue;
        // of each of three rows of at most 1, and of their sum of at most 3
        EXPECT_LT((tensors[i] - exact[i]).abs().max().item<double>(), (3 + 3) * half_step);
      }
  }
}

}  // namespace
}  // namespace titan::semi_sync
