// The scorer, compared with PyTorch's log_softmax of the same logits.
#include "plugins/commands/evaluate/scorer.h"

#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::evaluation {
namespace {

constexpr int64_t kVocab = 11;

/// A network whose logits depend on the token and the number of tokens before it in its sequence.
class TableExecutor final : public StepExecutor {
 public:
  void connect(StepContext) override {}
  StepLoss forward_backward(const StepBatches&) override { return {}; }
  StepLoss forward(const StepBatches&) override { return {}; }
  at::Tensor logits(const Batch& batch) override {
    ++num_forwards;
    num_tokens += batch.tokens.numel();
    EXPECT_EQ(batch.tokens.numel() % 4, 0);
    const at::Tensor rows = table.index({batch.tokens.flatten(), batch.positions.flatten()});
    return rows.index_select(0, batch.logits_of).unsqueeze(0);
  }

  at::Tensor table = at::randn({kVocab, 40, kVocab});
  int64_t num_forwards = 0, num_tokens = 0;
};

std::vector<Request> scored_requests() {
  std::vector<Request> all;
  for (int32_t i = 0; i < 30; ++i) {
    Request& request = all.emplace_back();
    for (int32_t j = 0; j <= i % 13; ++j) request.context.push_back((i + 3 * j) % kVocab);
    for (int32_t j = 0; j <= i % 4; ++j) request.target.push_back((5 * i + j) % kVocab);
  }
  return all;
}

TEST(Scorer, SumsTheLogSoftmaxOfTheTokensAskedFor) {
  const auto requests = scored_requests();
  const dist::Mesh mesh;
  bool is_any_greedy = false;
  for (const int64_t batch_tokens : {4096, 16, 5}) {
    TableExecutor executor;
    const Request& likely = requests[8];  // one token: the most likely of its row
    executor.table[likely.context.back()][static_cast<int64_t>(likely.context.size()) - 1]
                  [likely.target.front()] = 20;
    Scorer scorer(executor, mesh, c10::kCPU,
                  {.batch_tokens = batch_tokens, .vocab_size = kVocab, .tokens_multiple = 4});
    const auto answers = scorer.score(requests);
    ASSERT_EQ(answers.size(), requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      const Request& request = requests[i];
      double sum = 0;
      bool is_greedy = true;
      int64_t token = request.context.back();
      for (size_t j = 0; j < request.target.size(); ++j) {
        const at::Tensor row =
            executor.table[token][static_cast<int64_t>(request.context.size() - 1 + j)];
        sum += at::log_softmax(row, 0)[request.target[j]].item<double>();
        is_greedy = is_greedy && row.argmax().item<int64_t>() == request.target[j];
        token = request.target[j];
      }
      EXPECT_NEAR(answers[i].sum, sum, 1e-5);
      EXPECT_EQ(answers[i].is_greedy, is_greedy);
      is_any_greedy = is_any_greedy || is_greedy;
    }
    EXPECT_EQ(executor.num_forwards == 1, batch_tokens == 4096);
  }
  EXPECT_TRUE(is_any_greedy);
}

}  // namespace
}  // namespace titan::evaluation
