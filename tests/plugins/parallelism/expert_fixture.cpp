#include "tests/plugins/parallelism/expert_fixture.h"

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include "core/plugin/registry.h"
#include "tests/plugins/registry.h"

namespace titan::expert_test {
namespace {

Value degrees_of(int64_t degree, int64_t tensor_degree) {
  return Value::map({{"degree", degree}, {"tensor_degree", tensor_degree}});
}

}  // namespace

std::vector<Layer> one_mixture(const Kind& kind) {
  const nn::Init init = nn::Init::normal(0, 0.5);
  std::vector<Layer> layers;
  layers.push_back({"moe",
                    std::make_unique<nn::MixtureOfExperts>(
                        nn::MoeOptions{.router = {.dim = kDim,
                                                  .num_experts = kExperts,
                                                  .top_k = kind.top_k,
                                                  .normalises = kind.top_k > 1,
                                                  .forces_balance = kind.forces_balance,
                                                  .init = init},
                                       .hidden_dim = kHidden,
                                       .num_shared_experts = kind.has_shared_and_biases ? 2 : 0,
                                       .weighs_inputs = kind.weighs_inputs,
                                       .has_biases = kind.has_shared_and_biases,
                                       .gate_init = init,
                                       .output_init = init}),
                    "moe", kDim});
  return layers;
}

void give_memory(ModelPart& part, const Kind& kind) {
  part.materialize(c10::kCPU, at::kDouble, 11);
  for (nn::Parameter* parameter : part.parameters())
    if (!kind.gate.empty() && parameter->name() == "moe.router.gate.weight")
      for (int64_t e = 0; e < kExperts; ++e)
        parameter->shard().detach()[e].fill_(kind.gate[static_cast<size_t>(e)]);
}

dist::Grid expert_grid(const dist::MeshShape& shape, int64_t degree, int64_t tensor_degree) {
  const auto& plugin = testing::plugin_registry().component("parallelism", "expert");
  const std::shared_ptr<void> options = plugin.schema.make(degrees_of(degree, tensor_degree));
  AxisPlan plan;
  plugin.axes(options.get(), plan);
  dist::Grid grid(shape);
  plan.apply(grid);
  return grid;
}

std::unique_ptr<Parallelism> make_expert(const TransformContext& context, int64_t degree,
                                         int64_t tensor_degree) {
  return testing::create<Parallelism>("expert", degrees_of(degree, tensor_degree), context);
}

at::Tensor numbers(int64_t rows, int64_t tokens, int64_t rank, double shift) {
  const at::Tensor places =
      at::arange(rows * tokens * kDim, at::TensorOptions().dtype(at::kDouble));
  return at::sin(places * 12.9898 + static_cast<double>(rank) * 3.7 + shift)
             .view({rows, tokens, kDim}) +
         1;
}

Passed pass(ModelPart& part, const at::Tensor& values, const at::Tensor& dy) {
  const at::Tensor x = values.clone().set_requires_grad(true);
  const at::Tensor y = (*part.layers()[0].module)(x, Batch());
  y.backward(dy);
  return {y.detach(), x.grad()};
}

void expect_close(const at::Tensor& found, const at::Tensor& expected, const std::string& what) {
  ASSERT_TRUE(found.defined()) << what;
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  if (found.numel() > 0) {
    EXPECT_LE((found - expected).abs().max().item<double>(), 1e-12) << what;
  }
}

}  // namespace titan::expert_test
