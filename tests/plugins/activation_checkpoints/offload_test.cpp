// Activations offloaded to host memory: same gradients, each storage moved once, and only allowed
// activations left on the device.
#include <utility>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <titan/error.h>

#include "core/runtime/tensors/meta_memory.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan::testing {
namespace {

using core::MetaMemory;

struct OffloadedModel {
  OffloadedModel(const std::string& mode, const Value& options, c10::Device where,
                 std::vector<Layer> layers = llama_layers(false, 3))
      : device(make_cpu()), part(std::move(layers)) {
    const TransformContext context{.mesh = mesh, .device = *device};
    if (mode != "none") {
      transform = create<ActivationCheckpoint>(mode, options, context);
      transform->apply(part, context);
    }
    part.materialize(where, at::kFloat, kSeed);
  }
  dist::Mesh mesh;
  std::unique_ptr<Device> device;
  ModelPart part;
  std::unique_ptr<ActivationCheckpoint> transform;
};

TEST(Offload, LeavesGradientsAsTheyAre) {
  for (const bool prefetches : {true, false})
    for (const char* min_bytes : {"1B", "3KiB"}) {
      const Value options = Value::map({{"min_bytes", min_bytes}, {"prefetch", prefetches}});
      OffloadedModel plain("none", Value::map(), at::kCPU), moved("offload", options, at::kCPU);
      std::vector<at::Tensor> pending;  // two microbatches in flight, as in a pipeline
      for (int round = 0; round < 2; ++round) {
        plain.part.forward(at::Tensor(), make_rows(3 * round, 3)).backward();
        pending.push_back(moved.part.forward(at::Tensor(), make_rows(3 * round, 3)));
      }
      for (const at::Tensor& loss : pending) loss.backward();
      for (size_t i = 0; i < plain.part.parameters().size(); ++i)
        EXPECT_TRUE(
            at::equal(moved.part.parameters()[i]->grad(), plain.part.parameters()[i]->grad()))
            << plain.part.parameters()[i]->name();
    }
}

/// Saves two views of one storage; only one of them begins at its start.
class TwoHalves final : public nn::Module {
 public:
  TwoHalves() : weight_(add_parameter("weight", {8}, nn::Init::normal(0, 1))) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override {
    const at::Tensor both = at::cat({x * weight_.value(), x + weight_.value()}, 0);
    return both.narrow(0, 0, 8) * both.narrow(0, 8, 8);
  }

 private:
  nn::Parameter& weight_;
};

TEST(Offload, ViewsBeginWhereTheyBegan) {
  const auto gradient = [](const std::string& mode, const Value& options) {
    std::vector<Layer> layers;
    layers.push_back({"block", std::make_unique<TwoHalves>(), "block", 8, /*is_block=*/true});
    OffloadedModel model(mode, options, at::kCPU, std::move(layers));
    model.part.forward(at::arange(8).to(at::kFloat), {}).sum().backward();
    return model.part.parameters()[0]->grad();
  };
  EXPECT_TRUE(at::equal(gradient("offload", Value::map({{"min_bytes", "1B"}})),
                        gradient("none", Value::map())));
}

int64_t kept_bytes(const std::string& mode, const Value& options) {
  MetaMemory::start_counting();
  OffloadedModel model(mode, options, c10::kMeta);
  const auto ids = at::TensorOptions().dtype(at::kLong).device(c10::kMeta);
  const Batch batch{.tokens = at::empty({5, kSeqLen}, ids), .labels = at::empty({5, kSeqLen}, ids)};
  const int64_t before = MetaMemory::live().total();
  const at::Tensor loss = model.part.forward(at::Tensor(), batch);
  return MetaMemory::live().total() - before;
}

TEST(Offload, KeepsOneBlockOnTheDeviceUntilItsCopiesAreWaitedFor) {
  const int64_t plain = kept_bytes("none", Value::map());
  const int64_t all_moved = kept_bytes("offload", Value::map({{"min_bytes", "1B"}}));
  const int64_t nothing_moved = kept_bytes("offload", Value::map({{"min_bytes", "1GiB"}}));
  constexpr int64_t kTokens = 5 * kSeqLen, kDim = 24;
  // per block: x, h and both norms' outputs, q, k, v, attention's output, gate, up, their product;
  // log-sum-exp and two numbers per token; the first block's input is the embedding's output
  constexpr int64_t kPerToken = 4 * kDim + 2 * 24 + 2 * 12 + 3 * 68 + 4 + 2;
  EXPECT_EQ(nothing_moved, plain);
  EXPECT_EQ(plain - all_moved, 2 * kTokens * kPerToken * 4);  // the last of the three stays
}

/// The peak bytes of a forward and backward, and the bytes of the gradients at the end.
std::pair<int64_t, int64_t> peak_and_gradients(int num_blocks, bool prefetches) {
  MetaMemory::start_counting();
  OffloadedModel model("offload", Value::map({{"min_bytes", "1B"}, {"prefetch", prefetches}}),
                       c10::kMeta, llama_layers(false, num_blocks));
  const auto ids = at::TensorOptions().dtype(at::kLong).device(c10::kMeta);
  const Batch batch{.tokens = at::empty({5, kSeqLen}, ids), .labels = at::empty({5, kSeqLen}, ids)};
  const int64_t before = MetaMemory::live().total();
  MetaMemory::reset_peak();
  model.part.forward(at::Tensor(), batch).backward();
  return {MetaMemory::peak().bytes.total() - before, MetaMemory::live().total() - before};
}

TEST(Offload, TakesNoMoreMemoryForMoreBlocksThanTheirGradients) {
  for (const bool prefetches : {true, false}) {
    const auto [few_peak, few_gradients] = peak_and_gradients(3, prefetches);
    const auto [many_peak, many_gradients] = peak_and_gradients(9, prefetches);
    EXPECT_LE(many_peak - few_peak, many_gradients - few_gradients) << "prefetch " << prefetches;
  }
}

TEST(Offload, NeedsBlocks) {
  dist::Mesh mesh;
  const auto device = make_cpu();
  std::vector<Layer> layers = llama_layers(false);
  for (Layer& layer : layers) layer.is_block = false;
  ModelPart part(std::move(layers));
  const TransformContext context{.mesh = mesh, .device = *device};
  const auto offload = create<ActivationCheckpoint>("offload", Value::map(), context);
  EXPECT_THROW(offload->apply(part, context), Error);
}

}  // namespace
}  // namespace titan::testing
