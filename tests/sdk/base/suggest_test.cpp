#include <titan/suggest.h>

#include <gtest/gtest.h>

namespace titan::core {
namespace {

TEST(EditDistance, CountsTheUsualSlips) {
  EXPECT_EQ(edit_distance("steps", "steps"), 0);
  EXPECT_EQ(edit_distance("stepz", "steps"), 1);
  EXPECT_EQ(edit_distance("step", "steps"), 1);
  EXPECT_EQ(edit_distance("setps", "steps"), 1) << "a swap is one slip";
  EXPECT_EQ(edit_distance("STEPS", "steps"), 0);
  EXPECT_EQ(edit_distance("seq-len", "seq_len"), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Nearest, IsTheNameThatWasMeantOrNothing) {
  const std::vector<std::string> names = {"steps", "seq_len", "data_parallel_shard_degree", "lr"};
  EXPECT_EQ(nearest("stepz", names), "steps");
  EXPECT_EQ(nearest("seqlen", names), "seq_len");
  EXPECT_EQ(nearest("data_parallel", names), "data_parallel_shard_degree") << "a beginning";
  EXPECT_EQ(nearest("warmup", names), std::nullopt);
  EXPECT_EQ(nearest("ab", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest(std::string(1 << 20, 'x'), names), std::nullopt);
}

TEST(DidYouMean, IsAHintOrEmpty) {
  EXPECT_EQ(did_you_mean("momentun", {"momentum"}), "did you mean 'momentum'?");
  EXPECT_EQ(did_you_mean("xyz", {"momentum"}), "");
}

}  // namespace
}  // namespace titan::core
