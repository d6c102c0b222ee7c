// Which steps are replayed: those like the two steps before, and none after a failed recording.
// device_order_test.py checks the results of replays on the recording device.
#include "core/train/step/step_graph.h"

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace titan::core {
namespace {

class ReplayedWeight final : public nn::Module {
 public:
  ReplayedWeight() { add_parameter("weight", {3}, nn::Init::constant(2)); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
};

ModelPart replayed_weight() {
  std::vector<Layer> layers;
  layers.push_back({"layer", std::make_unique<ReplayedWeight>(), "layer"});
  ModelPart part(std::move(layers));
  part.materialize(c10::kCPU, at::kFloat, 0);
  return part;
}

/// Runs the work when it is recorded, and does nothing when it is replayed.
class CountingGraphs final : public DeviceGraphs {
 public:
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) override {
    if (fails) throw std::runtime_error("this work cannot be recorded");
    work();
    return std::make_unique<Graph>(num_replays);
  }
  bool fails = false;
  int num_replays = 0;

 private:
  struct Graph final : DeviceGraph {
    explicit Graph(int& count) : count(count) {}
    void replay() override { ++count; }
    int& count;
  };
};

StepBatches batches_of(std::vector<int64_t> lengths, int64_t num_valid_tokens = 8) {
  StepBatches batches;
  for (const int64_t length : lengths) {
    Batch batch;
    batch.tokens = batch.labels = at::arange(length).view({1, length});
    batches.microbatches.push_back(batch);
  }
  batches.num_valid_tokens = num_valid_tokens;
  return batches;
}

struct StepGraphTest : ::testing::Test {
  bool is_replayed(const StepBatches& batches) {
    const int before = graphs.num_replays;
    const auto sum = graph.run(batches, [&](const std::vector<Batch>& microbatches, int64_t) {
      inputs = microbatches;
      at::Tensor shard = part.parameters().front()->shard();
      shard.mutable_grad() = at::full({3}, 5.0);
      return at::full({}, 7.0, at::kDouble);
    });
    EXPECT_EQ(sum.has_value(), graphs.num_replays == before + 1);
    if (sum) {
      EXPECT_EQ(sum->item<double>(), 7);
      EXPECT_EQ(part.parameters().front()->grad()[0].item<float>(), 5);
    }
    part.clear_gradients();
    return sum.has_value();
  }

  CountingGraphs graphs;
  ModelPart part = replayed_weight();
  StepGraph graph{graphs, part, c10::kCPU};
  std::vector<Batch> inputs;
};

TEST_F(StepGraphTest, ReplaysFromTheThirdStepOn) {
  EXPECT_FALSE(is_replayed(batches_of({4, 4})));
  EXPECT_FALSE(is_replayed(batches_of({4, 4})));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_replayed(batches_of({4, 4})));
}

TEST_F(StepGraphTest, WritesTheBatchWhereTheRecordedOneLies) {
  for (int i = 0; i < 3; ++i) is_replayed(batches_of({4}));
  const at::Tensor recorded = inputs.front().tokens;
  StepBatches other = batches_of({4});
  other.microbatches.front().tokens = at::full({1, 4}, 9);
  EXPECT_TRUE(is_replayed(other));
  EXPECT_TRUE(recorded.equal(at::full({1, 4}, 9)));
}

TEST_F(StepGraphTest, CountsFromAnewWhereStepsDiffer) {
  is_replayed(batches_of({4}));
  is_replayed(batches_of({4}));
  EXPECT_FALSE(is_replayed(batches_of({5})));
  EXPECT_FALSE(is_replayed(batches_of({5})));
  EXPECT_TRUE(is_replayed(batches_of({5})));
}

TEST_F(StepGraphTest, LeavesOtherStepsToTheCallerAndGoesOnBehindThem) {
  for (int i = 0; i < 3; ++i) is_replayed(batches_of({4, 4}));
  EXPECT_FALSE(is_replayed(batches_of({4, 4}, /*num_valid_tokens=*/7)));
  EXPECT_FALSE(is_replayed(batches_of({4, 5})));
  EXPECT_FALSE(is_replayed(batches_of({4})));
  StepBatches scaled = batches_of({4, 4});
  scaled.gradient_scale = 2;
  EXPECT_FALSE(is_replayed(scaled));
  StepBatches placed = batches_of({4, 4});
  placed.microbatches.back().positions = at::zeros({1, 4}, at::kLong);
  EXPECT_FALSE(is_replayed(placed));
  StepBatches others = batches_of({4, 4});
  others.microbatches.front().places.first_row = 8;
  EXPECT_FALSE(is_replayed(others));
  EXPECT_TRUE(is_replayed(batches_of({4, 4})));
}

TEST_F(StepGraphTest, GivesUpWhereTheDeviceCannotRecord) {
  graphs.fails = true;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(is_replayed(batches_of({4})));
  graphs.fails = false;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(is_replayed(batches_of({4})));
}

}  // namespace
}  // namespace titan::core
