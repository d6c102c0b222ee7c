// The synthetic dataset: counting its tokens gives its documented optimal loss.
#include "plugins/datasets/synthetic/synthetic_dataset.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

SyntheticDataset make(SyntheticOptions options, uint64_t seed = 42) {
  return SyntheticDataset(options, {.seed = seed});
}

std::vector<int32_t> tokens_of(const SyntheticDataset& dataset, int64_t index) {
  Document document;
  dataset.read(index, document);
  EXPECT_TRUE(document.is_tokenised);
  return document.tokens;
}

/// Entropy of the counts in nats, corrected for the bias of counting (Miller and Madow, 1955).
double entropy(const std::map<int32_t, double>& counts) {
  double total = 0, sum = 0;
  for (const auto& [token, count] : counts) total += count;
  for (const auto& [token, count] : counts) sum -= count / total * std::log(count / total);
  return sum + (static_cast<double>(counts.size()) - 1) / (2 * total);
}

struct Counts {
  std::map<int32_t, double> first, all;
  std::map<int32_t, std::map<int32_t, double>> followers;

  explicit Counts(const SyntheticDataset& dataset) {
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const std::vector<int32_t> tokens = tokens_of(dataset, i);
      ++first[tokens[0]];
      for (size_t t = 0; t < tokens.size(); ++t) {
        ++all[tokens[t]];
        if (t > 0) ++followers[tokens[t - 1]][tokens[t]];
      }
    }
  }
  /// Entropy of a token, given the token before it.
  double conditional_entropy() const {
    double total = 0, sum = 0;
    for (const auto& [token, counts] : followers) {
      double of_token = 0;
      for (const auto& [follower, count] : counts) of_token += count;
      total += of_token;
      sum += of_token * entropy(counts);
    }
    return sum / total;
  }
};

TEST(SyntheticDataset, MarkovTokensHaveTheStatedEntropyRate) {
  for (int64_t branching : {1, 2, 4, 50}) {
    const SyntheticDataset dataset = make(
        {.vocab_size = 50, .document_length = 500, .num_documents = 1000, .branching = branching});
    const Counts counts(dataset);
    const SyntheticOptimum best = dataset.optimum();
    EXPECT_NEAR(counts.conditional_entropy(), best.after_first, 0.004) << branching;
    EXPECT_NEAR(entropy(counts.first), best.first_token, 0.05) << branching;
    EXPECT_NEAR(entropy(counts.all), std::log(50.0), 0.01) << branching;
    EXPECT_NEAR(best.per_token, (best.first_token + 499 * best.after_first) / 500, 1e-12);
    for (const auto& [token, followers] : counts.followers)
      EXPECT_EQ(static_cast<int64_t>(followers.size()), branching) << token;
  }
}

TEST(SyntheticDataset, MarkovEntropyRateIsThatOfTheWeights) {
  // 12/25, 6/25, 4/25, 3/25
  const double expected = -(0.48 * std::log(0.48) + 0.24 * std::log(0.24) + 0.16 * std::log(0.16) +
                            0.12 * std::log(0.12));
  EXPECT_NEAR(make({.branching = 4}).optimum().after_first, expected, 1e-12);
  EXPECT_NEAR(make({.branching = 4}).optimum().first_token, std::log(256.0), 1e-12);
  EXPECT_EQ(make({.branching = 1}).optimum().after_first, 0);
}

TEST(SyntheticDataset, UniformTokensCannotBePredicted) {
  const SyntheticDataset dataset = make({.task = SyntheticTask::uniform,
                                         .vocab_size = 20,
                                         .document_length = 500,
                                         .num_documents = 1000});
  const Counts counts(dataset);
  EXPECT_NEAR(dataset.optimum().per_token, std::log(20.0), 1e-12);
  EXPECT_NEAR(entropy(counts.all), dataset.optimum().per_token, 0.002);
  EXPECT_NEAR(counts.conditional_entropy(), dataset.optimum().after_first, 0.002);
}

TEST(SyntheticDataset, CopiesRepeatWhatWasDrawn) {
  const SyntheticDataset dataset = make({.task = SyntheticTask::copy,
                                         .vocab_size = 12,
                                         .document_length = 40,
                                         .num_documents = 5000});
  std::map<int32_t, double> drawn;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const std::vector<int32_t> tokens = tokens_of(dataset, i);
    ASSERT_EQ(tokens.size(), 40U);
    EXPECT_EQ(tokens[0], 0);
    EXPECT_EQ(tokens[20], 1);
    ASSERT_TRUE(std::equal(tokens.begin() + 1, tokens.begin() + 20, tokens.begin() + 21));
    for (int t = 1; t < 20; ++t) ++drawn[tokens[t]];
  }
  EXPECT_EQ(drawn.begin()->first, 2);
  EXPECT_EQ(drawn.rbegin()->first, 11);
  EXPECT_NEAR(entropy(drawn) * 19 / 40, dataset.optimum().per_token, 0.001);
  EXPECT_NEAR(dataset.optimum().per_token, std::log(10.0) * 19 / 40, 1e-12);
  EXPECT_NEAR(dataset.optimum().after_first * 39, dataset.optimum().per_token * 40, 1e-9);
}

TEST(SyntheticDataset, DocumentsDependOnSeedAndNumberOnly) {
  const SyntheticDataset a = make({.num_documents = 10});
  const SyntheticDataset later = make({.num_documents = 5, .first_document = 4});
  EXPECT_EQ(tokens_of(a, 7), tokens_of(a, 7));
  EXPECT_EQ(tokens_of(a, 7), tokens_of(make({.num_documents = 8}), 7));
  EXPECT_EQ(tokens_of(a, 7), tokens_of(later, 3));
  EXPECT_NE(tokens_of(a, 7), tokens_of(make({.num_documents = 10}, 43), 7));
  EXPECT_NE(a.fingerprint(), later.fingerprint());
  EXPECT_NE(a.fingerprint(), make({.num_documents = 10}, 43).fingerprint());
  EXPECT_EQ(a.fingerprint(), make({.num_documents = 10}).fingerprint());
  std::set<std::vector<int32_t>> different;
  for (int64_t i = 0; i < a.size(); ++i) different.insert(tokens_of(a, i));
  EXPECT_EQ(different.size(), 10U);
  EXPECT_TRUE(holds(later.place(3), "document 7 of seed 42"));
}

TEST(SyntheticDataset, TokensAreTheSameOnEveryMachine) {
  // computed independently of this code, with SplitMix64 as published
  const auto first = [](SyntheticTask task) {
    std::vector<int32_t> tokens = tokens_of(make({.task = task}), 0);
    tokens.resize(4);
    return tokens;
  };
  EXPECT_EQ(first(SyntheticTask::markov), (std::vector<int32_t>{59, 19, 65, 131}));
  EXPECT_EQ(first(SyntheticTask::uniform), (std::vector<int32_t>{59, 207, 144, 155}));
  EXPECT_EQ(first(SyntheticTask::copy), (std::vector<int32_t>{0, 61, 207, 145}));
}

TEST(SyntheticDataset, RefusesOptionsThatDoNotFit) {
  const auto message = [](SyntheticOptions options) {
    const Error error = error_of([&] { make(options); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.message();
  };
  EXPECT_TRUE(holds(message({.vocab_size = 1}), "vocab_size"));
  EXPECT_TRUE(holds(message({.vocab_size = 5, .branching = 6}), "branching"));
  EXPECT_TRUE(holds(message({.task = SyntheticTask::copy, .document_length = 7}), "got 7"));
  EXPECT_TRUE(holds(message({.task = SyntheticTask::copy, .vocab_size = 3}), "got 3"));
  EXPECT_TRUE(holds(message({.num_documents = 0}), "num_documents"));
  const Error error = error_of([] { SyntheticDataset({}, {.path = "x.bin"}); });
  EXPECT_TRUE(holds(error.message(), "'x.bin'"));
}

}  // namespace
}  // namespace titan::datasets
