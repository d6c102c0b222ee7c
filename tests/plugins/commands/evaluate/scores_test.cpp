// Scores, computed by hand; tests/end_to_end/evaluate_test.py compares with the harness itself.
#include "plugins/commands/evaluate/scores.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>

#include "plugins/commands/evaluate/evaluate_fixture.h"
#include "plugins/commands/evaluate/results.h"

namespace titan::evaluation {
namespace {

class Scores : public EvaluateFixture {
 protected:
  static const Metric& metric(const TaskScores& scores, const std::string& name) {
    for (const Metric& one : scores.metrics)
      if (one.name == name) return one;
    ADD_FAILURE() << name;
    return scores.metrics.front();
  }
};

TEST_F(Scores, CountChoicesBySumPerCharacterAndPerByte) {
  const auto task =
      tasks(
          {write("a.jsonl",
                 "{\"query\": \"q\", \"choices\": [\"ab\", \"\u00e9\u00e9\u00e9\"], \"gold\": 1}\n"
                 "{\"query\": \"q\", \"choices\": [\"a\", \"b\"], \"gold\": 0}\n"
                 "{\"query\": \"q\", \"choices\": [\"a\", \"b\"], \"gold\": [1, 0]}\n")})
          .at(0);
  // of the first: -2 > -5; -1 > -5/3 per character; -1 < -5/6 per byte
  const TaskScores scores = score(
      task, {{{-2, true}, {-5, false}}, {{-3, true}, {-3, false}}, {{-9, true}, {-3, false}}});
  EXPECT_NEAR(metric(scores, "acc").value, 2.0 / 3, 1e-15);
  EXPECT_NEAR(metric(scores, "acc_norm").value, 2.0 / 3, 1e-15);
  EXPECT_NEAR(metric(scores, "acc_bytes").value, 1, 1e-15);
  // s = sqrt(((2/3)^2 + 2 (1/3)^2) / 2) = sqrt(1/3)
  EXPECT_NEAR(metric(scores, "acc").standard_error.value(), std::sqrt(1.0 / 3) / std::sqrt(3.0),
              1e-15);
}

TEST_F(Scores, OfContinuationsAreTheirPerplexity) {
  const auto task = tasks({write("a.jsonl",
                                 "{\"context\": \"q\", \"continuation\": \"a\"}\n"
                                 "{\"context\": \"q\", \"continuation\": \"b\"}\n")})
                        .at(0);
  const TaskScores scores = score(task, {{{-1, true}}, {{-3, false}}}, 3000);
  EXPECT_NEAR(metric(scores, "perplexity").value, std::exp(2.0), 1e-12);
  EXPECT_NEAR(metric(scores, "perplexity").standard_error.value(), 6.456614185043171, 1e-9);
  EXPECT_FALSE(metric(score(task, {{{-1, true}}, {{-3, false}}}), "perplexity").standard_error);
  EXPECT_EQ(metric(scores, "acc").value, 0.5);
}

TEST_F(Scores, OfTextsArePerWordAndByteOfAllDocuments) {
  const auto all = tasks({write("a.jsonl", "{\"text\": \"a b\"}\n{\"text\": \"\u00e9\"}\n")});
  const TaskScores scores = score(all.at(0), {{{-6, true}}, {{-4, true}}});
  EXPECT_NEAR(metric(scores, "word_perplexity").value, std::exp(10.0 / 3), 1e-12);
  EXPECT_NEAR(metric(scores, "byte_perplexity").value, std::exp(2.0), 1e-12);
  EXPECT_NEAR(metric(scores, "bits_per_byte").value, 2 / std::log(2.0), 1e-12);
  EXPECT_FALSE(metric(scores, "bits_per_byte").standard_error);
  const Value results = results_json(all, {scores});
  EXPECT_EQ(results.at("results").at("a").at("word_perplexity_stderr,none"), Value("N/A"));
  EXPECT_EQ(results.at("n-samples").at("a").at("effective"), Value(2));
}

TEST_F(Scores, AddUpWindowsOfOneText) {
  const auto all = tasks({write("a.jsonl", "{\"text\": \"abcd\"}\n{\"text\": \"ab\"}\n")});
  const auto requests = make_requests(all, ScoredTokenizer(), {.adds_bos = false, .max_length = 2});
  ASSERT_EQ(requests.size(), 3);
  const auto answers = answers_by_task(all, requests, {{-1, true}, {-2, false}, {-4, true}});
  EXPECT_EQ(answers.at(0).at(0).at(0).sum, -3);
  EXPECT_FALSE(answers.at(0).at(0).at(0).is_greedy);
  EXPECT_EQ(answers.at(0).at(1).at(0).sum, -4);
}

}  // namespace
}  // namespace titan::evaluation
