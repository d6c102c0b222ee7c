#include "core/train/optimizer/gradient_norm.h"

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>
#include <titan/counted_elements.h>

#include "core/runtime/groups/process_groups.h"
#include "core/train/optimizer/gradient_clipper.h"

namespace titan::core {
namespace {

/// Two parameters of 3 and 4 elements, without computation.
class TwoParameters final : public nn::Module {
 public:
  TwoParameters() {
    add_parameter("a", {3}, nn::Init::constant(0));
    add_parameter("b", {2, 2}, nn::Init::constant(0));
  }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
};

ModelPart make_part() {
  std::vector<Layer> layers;
  layers.push_back({"layer", std::make_unique<TwoParameters>(), "layer"});
  ModelPart part(std::move(layers));
  part.materialize(c10::kCPU, at::kFloat, 1);
  return part;
}

void set_gradients(ModelPart& part, double value) {
  for (nn::Parameter* parameter : part.parameters())
    parameter->shard().mutable_grad() = at::full(parameter->slice().sizes, value);
}

TEST(GradientNorm, IsTheNormOverAllParametersBeforeClipping) {
  ModelPart part = make_part();
  set_gradients(part, 2.0);
  const GradientNorm norm = clip_gradients(part, dist::Mesh(), c10::kCPU, 1.0);
  EXPECT_NEAR(norm.value, std::sqrt(7 * 4.0), 1e-6);
  const double coefficient = 1.0 / (norm.value + 1e-6);
  for (const nn::Parameter* parameter : part.parameters())
    EXPECT_NEAR(parameter->grad().max().item().toDouble(), 2 * coefficient, 1e-6);
}

TEST(GradientNorm, LeavesSmallGradientsBitwiseAlone) {
  ModelPart part = make_part();
  set_gradients(part, 0.1);
  clip_gradients(part, dist::Mesh(), c10::kCPU, 1.0);
  for (const nn::Parameter* parameter : part.parameters())
    EXPECT_EQ(parameter->grad().max().item().toFloat(), 0.1f);
}

TEST(GradientNorm, IsZeroWithoutGradients) {
  ModelPart part = make_part();
  EXPECT_EQ(clip_gradients(part, dist::Mesh(), c10::kCPU, 1.0).value, 0);
}

// Norms that stay on the device are computed by other operations.
TEST(GradientNorm, UnseenIsTheSameToTheBit) {
  for (const double max_norm : {0.0, 0.3, 1.0, 1e9})
    for (const double value : {0.1, 1.0 / 3, 7e5}) {
      ModelPart seen = make_part(), unseen = make_part();
      set_gradients(seen, value), set_gradients(unseen, value);
      const GradientNorm norm = clip_gradients(seen, dist::Mesh(), c10::kCPU, max_norm);
      const at::Tensor there = clip_gradients_unseen(unseen, dist::Mesh(), c10::kCPU, max_norm);
      EXPECT_EQ(there.item<double>(), norm.value);
      for (size_t i = 0; i < seen.parameters().size(); ++i)
        EXPECT_TRUE(at::equal(seen.parameters()[i]->grad(), unseen.parameters()[i]->grad()))
            << max_norm << " of " << value;
    }
}

TEST(GradientNorm, OfNarrowGradientsIsSummedAndClippedWithoutRounding) {
  const int64_t length = 5000;  // several rows and a remainder
  std::vector<Layer> layers;
  class Long final : public nn::Module {
   public:
    explicit Long(int64_t n) { add_parameter("a", {n}, nn::Init::constant(0)); }

   protected:
    at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
  };
  layers.push_back({"layer", std::make_unique<Long>(length), "layer"});
  ModelPart part(std::move(layers));
  part.materialize(c10::kCPU, at::kBFloat16, 1);
  const at::Tensor gradient = at::linspace(-1, 1, length, at::kFloat).to(at::kBFloat16);
  part.parameters()[0]->shard().mutable_grad() = gradient.clone();
  const double exact = gradient.to(at::kDouble).square().sum().sqrt().item<double>();
  const double norm = clip_gradients(part, dist::Mesh(), c10::kCPU, 0.1234).value;
  EXPECT_NEAR(norm, exact, 1e-6 * exact);
  const auto factor = static_cast<float>(0.1234 / (norm + 1e-6));
  EXPECT_TRUE(at::equal(part.parameters()[0]->grad(),
                        (gradient.to(at::kFloat) * factor).to(at::kBFloat16)));
}

TEST(GradientNorm, UnseenMultipliesNarrowGradientsByAnUnroundedNumber) {
  ModelPart part = make_part();
  for (nn::Parameter* parameter : part.parameters()) {
    parameter->shard().set_data(parameter->shard().to(at::kBFloat16));
    parameter->shard().mutable_grad() =
        at::full(parameter->slice().sizes, 1.0, at::TensorOptions().dtype(at::kBFloat16));
  }
  const double norm = clip_gradients_unseen(part, dist::Mesh(), c10::kCPU, 1.234).item<double>();
  for (const nn::Parameter* parameter : part.parameters())
    EXPECT_EQ(parameter->grad().max().item<float>(),
              static_cast<float>(c10::BFloat16(static_cast<float>(1.234 / (norm + 1e-6)))));
}

TEST(GradientNorm, MeasuresWhatClippingDoes) {
  for (const double max_norm : {0.0, 1.234, 1e6}) {
    ModelPart part = make_part();
    set_gradients(part, 1.5);
    const Clipping clipping = measure_clipping(part, dist::Mesh(), c10::kCPU, max_norm);
    const UnseenClipping unseen = measure_clipping_unseen(part, dist::Mesh(), c10::kCPU, max_norm);
    for (const nn::Parameter* parameter : part.parameters())
      EXPECT_EQ(parameter->grad().max().item<float>(), 1.5f);
    EXPECT_EQ(unseen.norm.item<double>(), clipping.norm);
    EXPECT_EQ(unseen.coefficient.defined(), max_norm > 0);
    if (max_norm > 0) {
      EXPECT_EQ(unseen.coefficient.item<double>(), clipping.coefficient);
    }
    clip_gradients(part, dist::Mesh(), c10::kCPU, max_norm);
    for (const nn::Parameter* parameter : part.parameters())
      EXPECT_EQ(parameter->grad().max().item<float>(),
                1.5f * static_cast<float>(clipping.coefficient));
  }
}

/// Records the scales of its calls.
class Scaling final : public Optimizer, public ScalesGradients {
 public:
  void step(double) override { ++plain_steps; }
  double lr() const override { return 1; }
  bool scales_gradients() const override { return is_able; }
  void step_scaled(double, const at::Tensor& scale) override {
    scales.push_back(scale.item<double>());
  }
  bool is_able = true;
  int plain_steps = 0;
  std::vector<double> scales;
};

TEST(GradientNorm, OptimizersThatScaleGradientsClipThem) {
  Scaling optimizer;
  OptimizerStep update(optimizer);
  DeviceScalars held([](int64_t number) { return number == 1; });
  ModelPart part = make_part();
  const dist::Mesh mesh;
  const auto take = [&](int64_t number, double max_norm) {
    set_gradients(part, 1.5);
    GradientClipper clipper(part, mesh, c10::kCPU, max_norm, &held, &update);
    Step step{.number = number};
    held.begin(step), update.begin(step);
    held.reduced(step), clipper.reduced(step);
    held.commit(step), update.commit(step);
    EXPECT_EQ(step.norm.has_value(), number == 1);
    return part.parameters().front()->grad().max().item<float>();
  };
  EXPECT_EQ(take(1, 1.0), 1.5f);
  EXPECT_EQ(take(2, 1.0), 1.5f);
  ASSERT_EQ(optimizer.scales.size(), 2u);
  EXPECT_EQ(optimizer.scales[0], optimizer.scales[1]);
  EXPECT_LT(optimizer.scales[0], 1);
  EXPECT_EQ(optimizer.plain_steps, 0);
  EXPECT_EQ(take(1, 1e6), 1.5f);  // no clipping needed
  EXPECT_EQ(take(2, 0), 1.5f);
  EXPECT_EQ(optimizer.plain_steps, 2);
  optimizer.is_able = false;
  EXPECT_LT(take(1, 1.0), 1.5f);
  EXPECT_LT(take(2, 1.0), 1.5f);
  EXPECT_EQ(optimizer.plain_steps, 4);
  EXPECT_EQ(optimizer.scales.size(), 2u);
  held.require_finite();
}

TEST(GradientNorm, CountsEveryElementOnceWhateverTheLayout) {
  dist::Grid grid(dist::MeshShape{.dp_replicate = 2, .dp_shard = 6, .cp = 2, .tp = 2});
  grid.borrow("experts", 6, {"cp", "dp_shard"});  // of dp_shard 3
  grid.add("depth", 2);
  using Cut = std::pair<int64_t, const char*>;
  const std::vector<std::vector<Cut>> layouts = {{},
                                                 {{0, "tp"}},
                                                 {{1, "tp"}},
                                                 {{0, "fsdp"}},
                                                 {{0, "tp"}, {0, "fsdp"}},
                                                 {{1, "tp"}, {0, "fsdp"}},
                                                 {{0, "dp_shard"}},
                                                 {{0, "experts"}},
                                                 {{0, "experts"}, {1, "fsdp-experts"}},
                                                 {{0, "depth"}, {0, "tp"}}};
  for (const std::vector<Cut>& cuts : layouts) {
    int64_t counted = 0;
    for (int rank = 0; rank < grid.world_size(); ++rank) {
      const dist::Mesh mesh = fake_mesh(grid, rank);
      nn::Parameter parameter({7, 5}, nn::Init::constant(0));  // not divisible
      for (const auto& [dim, group] : cuts) parameter.shard_over(dim, mesh.group(group));
      if (counts_elements(parameter, mesh)) counted += parameter.slice().num_elements();
    }
    EXPECT_EQ(counted, 35) << cuts.size() << " cuts";
  }
}

// Clipping to a norm, and optimizers that divide by the gradients' size, would hide a leftover
// scale.
TEST(GradientNorm, TakesTheScaleOfTheLossOutOfGradientsAndNorm) {
  constexpr double kScale = 65536, kTrue = 0.1;  // norm: 17340 scaled, 0.26 true
  for (const double max_norm : {0.0, 1.0, 0.01}) {
    ModelPart part = make_part();
    set_gradients(part, kTrue * kScale);
    const GradientNorm norm = clip_gradients(part, dist::Mesh(), c10::kCPU, max_norm, kScale);
    EXPECT_NEAR(norm.value, std::sqrt(7) * kTrue, 1e-6) << max_norm;
    const double clipped = max_norm == 0.01 ? 0.01 / (norm.value + 1e-6) : 1;
    for (const nn::Parameter* parameter : part.parameters())
      EXPECT_NEAR(parameter->grad().max().item().toDouble(), kTrue * clipped, 1e-7) << max_norm;
  }
}

TEST(GradientNorm, KeepsNonFiniteValuesVisible) {
  ModelPart part = make_part();
  set_gradients(part, std::nan(""));
  EXPECT_TRUE(std::isnan(clip_gradients(part, dist::Mesh(), c10::kCPU, 1.0).value));
}

}  // namespace
}  // namespace titan::core
