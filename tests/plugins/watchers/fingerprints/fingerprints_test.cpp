#include "plugins/watchers/fingerprints/fingerprints.h"

#include <filesystem>
#include <iterator>

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::fingerprints {
namespace {

class FingerprintsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(TITAN_TEST_BUILD_DIR) / "fingerprints";
    std::filesystem::create_directories(folder_);
  }

  /// Rows of four tokens, by their numbers.
  static Batch batch_of(const std::vector<int64_t>& rows) {
    at::Tensor tokens = at::arange(static_cast<int64_t>(4 * rows.size())).view({-1, 4});
    for (size_t i = 0; i < rows.size(); ++i)
      tokens[static_cast<int64_t>(i)] = at::arange(10 * rows[i], 10 * rows[i] + 4);
    return {.tokens = tokens, .labels = tokens + 1};
  }

  /// The fingerprint of a step with the global batch `rows`, distributed to `num_ranks` ranks.
  std::string written(const std::vector<int64_t>& rows, int64_t num_ranks) {
    const auto each = static_cast<int64_t>(rows.size()) / num_ranks;
    titan::testing::run_ranks({.dp_replicate = num_ranks}, [&](const dist::Mesh& mesh) {
      Fingerprints fingerprints(folder_.string(), false, mesh, c10::kCPU);
      StepBatches step;
      const auto first = rows.begin() + mesh.rank() * each;
      step.microbatches = {batch_of({first, first + each})};
      step.microbatches[0].places.first_row = mesh.rank() * each;
      fingerprints.record_tokens(1, fingerprints.hash_of_tokens(step));
    });
    std::ifstream in(folder_ / "fingerprints.jsonl");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_;
};

TEST_F(FingerprintsTest, OfTokensFollowFromTheGlobalBatchAlone) {
  const std::string of_one_rank = written({5, 6, 7, 8}, 1);
  EXPECT_EQ(of_one_rank.rfind("{\"step\":1,\"tokens\":\"", 0), 0u) << of_one_rank;
  EXPECT_EQ(written({5, 6, 7, 8}, 2), of_one_rank);
  EXPECT_NE(written({5, 6, 7, 9}, 2), of_one_rank);
}

TEST_F(FingerprintsTest, OfTokensSeeTheOrderOfRows) {
  EXPECT_NE(written({5, 6, 7, 8}, 1), written({6, 5, 7, 8}, 1));
  EXPECT_NE(written({5, 6, 7, 8}, 2), written({7, 8, 5, 6}, 2));
}

}  // namespace
}  // namespace titan::fingerprints
