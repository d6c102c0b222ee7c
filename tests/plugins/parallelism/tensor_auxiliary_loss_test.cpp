// Auxiliary losses with tensor parallelism, where ranks have the same tokens and where they do not:
// gradients and the sum equal those of one rank.
#include <cmath>
#include <memory>
#include <string>

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <titan/nn/auxiliary_loss.h>

#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan {
namespace {

using namespace titan::tensor_test;  // NOLINT: small verbs

/// Adds losses before the block, and within its feed-forward, whose input tensor parallelism
/// gathers.
std::vector<Layer> with_auxiliary_losses() {
  std::vector<Layer> layers = small_llama(false)();
  const auto add_loss = [](double factor) {
    return [factor](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      const at::Tensor loss = factor * (x.square() * x.sin()).sum();
      return next(nn::with_auxiliary_loss(x, loss, batch), batch);
    };
  };
  layers[1].module->wrap(add_loss(0.5));
  layers[2].module->visit_modules([&](const std::string& path, nn::Module& module) {
    if (path == "feed_forward") module.wrap(add_loss(0.25));
  });
  return layers;
}

struct AuxiliaryStep {
  StepResult step;
  double sum = 0;
};

AuxiliaryStep run_auxiliary(ModelPart& part) {
  part.materialize(c10::kCPU, at::kDouble, 11);
  Batch batch = small_batch(0);
  batch.auxiliary_losses = std::make_shared<AuxiliaryLosses>(0.125);
  (part.forward(at::Tensor(), batch) * 0.125).backward();
  AuxiliaryStep result{.sum = *batch.auxiliary_losses->sum()};
  for (nn::Parameter* p : part.parameters())
    result.step.parameters[p->name()] = {.slice = p->slice(),
                                         .weight = p->shard().detach(),
                                         .gradient = p->grad().clone(),
                                         .is_cut = !p->shardings().empty()};
  return result;
}

TEST(TensorAuxiliaryLoss, CountsEachTokenOnce) {
  ModelPart whole(with_auxiliary_losses());
  const AuxiliaryStep alone = run_auxiliary(whole);
  ASSERT_GT(std::abs(alone.sum), 1);
  const auto device = make_cpu();
  for (const TensorCase& c : all_tensor_cases()) {
    if (c.async) continue;  // with async, regions hold only linear layers
    SCOPED_TRACE(c.text());
    std::vector<StepResult> ranks(static_cast<size_t>(c.tp));
    run_ranks({.tp = c.tp}, [&](const dist::Mesh& mesh) {
      ModelPart part(with_auxiliary_losses());
      apply_tensor(part, c, mesh, *device);
      AuxiliaryStep own = run_auxiliary(part);
      ranks[static_cast<size_t>(mesh.rank())] = std::move(own.step);
      const double sum = mesh.group("world").all_reduce(own.sum, dist::Reduce::sum);
      EXPECT_NEAR(sum / alone.sum, 1, kTolerance);
    });
    expect_equal_steps(ranks, alone.step);
  }
}

}  // namespace
}  // namespace titan
