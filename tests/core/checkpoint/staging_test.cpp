// Staging: copies of the state that are written to disk while training continues.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "core/checkpoint/writer.h"

namespace titan::core {
namespace {

StateTensor whole(const std::string& name, const at::Tensor& tensor) {
  const std::vector<int64_t> sizes = tensor.sizes().vec();
  return {name, sizes, {std::vector<int64_t>(sizes.size(), 0), sizes}, tensor, {}};
}

/// Three tensors of different types and sizes. None of them ends at an aligned offset.
std::vector<StateTensor> make_state() {
  return {whole("a", at::arange(7, at::kFloat)), whole("b", at::arange(11, at::kDouble) + 100),
          whole("c", at::arange(15, at::kFloat).view({3, 5}) + 1000)};
}

TEST(Staging, KeepsEveryTensorAsItWasWhateverTrainingDoes) {
  const std::vector<StateTensor> state = make_state(), before = make_state();
  std::vector<ShardFile> files = plan_files(state, "weights", 0, {}, /*max_bytes=*/100);
  ASSERT_GT(files.size(), 1u) << "of more than one file";
  Staging staging(/*pinned=*/false);
  staging.warm_up(files);
  staging.copy(files);
  for (const StateTensor& tensor : state) tensor.tensor.fill_(-1);
  size_t num_seen = 0;
  for (const ShardFile& file : files)
    for (size_t i = 0; i < file.entries.size(); ++i)
      for (const StateTensor& expected : before)
        if (expected.name == file.entries[i].name) {
          EXPECT_TRUE(at::equal(file.tensors[i], expected.tensor)) << expected.name;
          ++num_seen;
        }
  EXPECT_EQ(num_seen, state.size());
}

TEST(Staging, ConvertsToTheTypeThatIsStored) {
  const std::vector<StateTensor> state = make_state();
  std::vector<ShardFile> files = plan_files(state, "weights", 0, at::kBFloat16);
  Staging staging(false);
  staging.copy(files);
  ASSERT_EQ(files.size(), 1u);
  for (size_t i = 0; i < files[0].entries.size(); ++i) {
    EXPECT_EQ(files[0].entries[i].dtype, "BF16");
    EXPECT_EQ(files[0].tensors[i].scalar_type(), at::kBFloat16);
  }
  EXPECT_GE(staging.bytes(), files[0].data_bytes);
}

}  // namespace
}  // namespace titan::core
