// Each step from logits to a token, computed by hand. An end-to-end test compares with the choices
// of transformers.

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <titan/generation/sampler.h>

namespace titan::core {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();

std::vector<float> processed(const std::vector<float>& logits, const SamplingOptions& options,
                             const std::vector<int32_t>& seen = {}) {
  const at::Tensor kept = processed_logits(at::tensor(logits), seen, options);
  return {kept.const_data_ptr<float>(), kept.const_data_ptr<float>() + kept.numel()};
}

using Logits = std::vector<float>;

TEST(Sampler, LeavesLogitsAlone) {
  EXPECT_EQ(processed({1, -2, 3}, {}), (Logits{1, -2, 3}));
  EXPECT_EQ(processed({1, -2, 3}, {.temperature = 1}), (Logits{1, -2, 3}));
}

TEST(Sampler, PenalisesWhatWasThereOnce) {
  EXPECT_EQ(processed({1, -2, 3}, {.repetition_penalty = 2}, {0, 1, 0}), (Logits{0.5, -4, 3}));
}

TEST(Sampler, DividesByTheTemperature) {
  EXPECT_EQ(processed({1, -2, 3}, {.temperature = 0.5}), (Logits{2, -4, 6}));
}

TEST(Sampler, KeepsTiesOfTheTopK) {
  EXPECT_EQ(processed({1, 2, 3, 2, 0}, {.temperature = 1, .top_k = 2}),
            (Logits{kOut, 2, 3, 2, kOut}));
  EXPECT_EQ(processed({1, 2}, {.temperature = 1, .top_k = 5}), (Logits{1, 2}));
}

TEST(Sampler, KeepsTheFewestWordsThatReachP) {
  const auto log_of = [](float p) { return std::log(p); };
  const Logits logits = {log_of(0.1F), log_of(0.5F), log_of(0.15F), log_of(0.25F)};
  EXPECT_EQ(processed(logits, {.temperature = 1, .top_p = 0.7}),
            (Logits{kOut, logits[1], kOut, logits[3]}));
  for (const double least : {0.01, 1e-12})  // in fp32 1 - 1e-12 is 1, the sum of all probabilities
    EXPECT_EQ(processed(logits, {.temperature = 1, .top_p = least}),
              (Logits{kOut, logits[1], kOut, kOut}));
}

TEST(Sampler, KeepsAShareOfTheMostLikely) {
  const auto log_of = [](float p) { return std::log(p); };
  const Logits logits = {log_of(0.1F), log_of(0.5F), log_of(0.15F), log_of(0.25F)};
  EXPECT_EQ(processed(logits, {.temperature = 1, .min_p = 0.4}),
            (Logits{kOut, logits[1], kOut, logits[3]}));
}

TEST(Sampler, IgnoresWhatIsForDrawsWithoutATemperature) {
  EXPECT_EQ(processed({1, 2, 3}, {.temperature = {}, .top_k = 1}), (Logits{1, 2, 3}));
}

TEST(Sampler, TakesTheFirstOfTheMostLikely) {
  at::Generator generator = at::detail::createCPUGenerator(1);
  EXPECT_EQ(next_token(at::tensor(Logits{1, 3, 3, 2}), {}, {}, generator), 1);
}

TEST(Sampler, DrawsTheSameForASeed) {
  const SamplingOptions options{.temperature = 1};
  const at::Tensor logits = at::zeros({1000});
  const auto draws = [&](uint64_t seed) {
    at::Generator generator = at::detail::createCPUGenerator(seed);
    std::vector<int32_t> ids;
    for (int i = 0; i < 5; ++i) ids.push_back(next_token(logits, {}, options, generator));
    return ids;
  };
  EXPECT_EQ(draws(7), draws(7));
  EXPECT_NE(draws(7), draws(8));
}

}  // namespace
}  // namespace titan::core
