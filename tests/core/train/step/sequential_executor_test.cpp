#include "core/train/step/sequential_executor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <titan/nn/auxiliary_loss.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

/// The loss sum of a batch is its one weight times the sum of the tokens.
class TimesTokens final : public nn::Module {
 public:
  TimesTokens() : weight_(add_parameter("weight", {1}, nn::Init::constant(3))) {}

 protected:
  at::Tensor forward(const at::Tensor&, const Batch& batch) override {
    return (weight_.value() * batch.tokens.to(at::kFloat)).sum();
  }

 private:
  nn::Parameter& weight_;
};

/// Records the calls that it receives.
class WritingReducer final : public GradientReducer {
 public:
  void begin_step() override { told += "begin "; }
  void start_microbatch(bool is_last) override { told += is_last ? "last " : "further "; }
  void finish_gradients() override { told += "finish "; }
  std::string told;
};

class SequentialExecutorTest : public ::testing::Test {
 protected:
  SequentialExecutorTest() : part_(layers()) {
    part_.materialize(c10::kCPU, at::kFloat, 1);
    executor_.connect({part_, *device_, {}, {&reducer_}, recorder_});
  }
  static std::vector<Layer> layers() {
    std::vector<Layer> layers;
    layers.push_back({"layer", std::make_unique<TimesTokens>(), "layer"});
    return layers;
  }
  static Batch batch_of(const std::vector<int64_t>& tokens) {
    return {.tokens = at::tensor(tokens, at::kLong).unsqueeze(0)};
  }
  /// This rank: 4 tokens with the sum 6. All ranks: 8 tokens.
  static StepBatches two_microbatches() {
    return {.microbatches = {batch_of({1, 2}), batch_of({3, 0})},
            .num_valid_tokens = 8,
            .num_local_valid_tokens = 4};
  }
  float gradient() const { return part_.parameters()[0]->grad().item<float>(); }

  const std::unique_ptr<Device> device_ = titan::testing::make_cpu();
  dist::Recorder recorder_;
  ModelPart part_;
  WritingReducer reducer_;
  SequentialExecutor executor_;
};

TEST_F(SequentialExecutorTest, DividesByTheTokensOfAllRanks) {
  EXPECT_DOUBLE_EQ(executor_.forward_backward(two_microbatches()).normalized_sum, 3 * 6.0 / 8);
  EXPECT_FLOAT_EQ(gradient(), 6.0f / 8);
  EXPECT_DOUBLE_EQ(executor_.forward(two_microbatches()).normalized_sum, 3 * 6.0 / 8);
}

TEST_F(SequentialExecutorTest, SaysWhichMicrobatchIsTheLast) {
  executor_.forward_backward(two_microbatches());
  EXPECT_EQ(reducer_.told, "begin further last finish ");
}

TEST_F(SequentialExecutorTest, ScalesGradientsButNotTheLoss) {
  StepBatches batches = two_microbatches();
  batches.gradient_scale = 16;
  EXPECT_DOUBLE_EQ(executor_.forward_backward(batches).normalized_sum, 3 * 6.0 / 8);
  EXPECT_FLOAT_EQ(gradient(), 16 * 6.0f / 8);
}

/// As above, plus weight · tokens as an auxiliary loss, ten times as large.
class TimesTokensTwice final : public nn::Module {
 public:
  TimesTokensTwice() : weight_(add_parameter("weight", {1}, nn::Init::constant(3))) {}

 protected:
  at::Tensor forward(const at::Tensor&, const Batch& batch) override {
    const at::Tensor loss = (weight_.value() * batch.tokens.to(at::kFloat)).sum();
    return nn::with_auxiliary_loss(loss, 10 * (weight_.value() * batch.tokens.to(at::kFloat)).sum(),
                                   batch);
  }

 private:
  nn::Parameter& weight_;
};

/// Returns a new batch, as context parallelism does.
class Splits final : public BatchSplitter {
 public:
  Batch split(const Batch& batch) const override { return {.tokens = batch.tokens}; }
};

TEST_F(SequentialExecutorTest, AddsAuxiliaryLossesToTheGradientsAndReportsThemApart) {
  std::vector<Layer> layers;
  layers.push_back({"layer", std::make_unique<TimesTokensTwice>(), "layer"});
  ModelPart part(std::move(layers));
  part.materialize(c10::kCPU, at::kFloat, 1);
  const Splits splits;
  SequentialExecutor executor;
  executor.connect({part, *device_, {&splits}, {}, recorder_});
  for (const double scale : {1.0, 16.0}) {
    StepBatches batches = two_microbatches();
    batches.gradient_scale = scale;
    const StepLoss loss = executor.forward_backward(batches);
    EXPECT_DOUBLE_EQ(loss.normalized_sum, 3 * 6.0 / 8);
    ASSERT_TRUE(loss.auxiliary);
    EXPECT_DOUBLE_EQ(*loss.auxiliary, 10 * 3 * 6.0 / 8);
    EXPECT_FLOAT_EQ(part.parameters()[0]->grad().item<float>(),
                    static_cast<float>(scale * 11 * 6.0 / 8));
    part.clear_gradients();
  }
  const StepLoss validated = executor.forward(two_microbatches());
  EXPECT_DOUBLE_EQ(validated.normalized_sum, 3 * 6.0 / 8);
  EXPECT_FALSE(validated.auxiliary);
  EXPECT_FALSE(executor_.forward_backward(two_microbatches()).auxiliary) << "no layer has one";
}

TEST_F(SequentialExecutorTest, TellsTheClockWhatRuns) {
  recorder_.clock().keep_spans(true);
  executor_.forward_backward(two_microbatches());
  std::string spans;
  for (const PhaseSpan& span : recorder_.clock().take_spans()) spans += span.name + "; ";
  EXPECT_EQ(spans,
            "forward of microbatch 0; backward of microbatch 0; forward of microbatch 1; "
            "backward of microbatch 1; ");
}

TEST_F(SequentialExecutorTest, LeavesNoGradientsBehindAForward) {
  executor_.forward(two_microbatches());
  EXPECT_FALSE(part_.parameters()[0]->grad().defined());
  EXPECT_EQ(reducer_.told, "");
}

}  // namespace
}  // namespace titan::core
