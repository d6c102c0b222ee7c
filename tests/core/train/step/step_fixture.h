// The smallest setting in which a step can run: a model of one parameter, and an executor that sets
// the gradient and the loss that a test chooses.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "core/train/step/step_runner.h"

namespace titan::core {

/// Three weights of 2.
class OneWeight final : public nn::Module {
 public:
  OneWeight() { add_parameter("weight", {3}, nn::Init::constant(2)); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
};

inline std::vector<Layer> one_weight() {
  std::vector<Layer> layers;
  layers.push_back({"layer", std::make_unique<OneWeight>(), "layer"});
  return layers;
}

/// Sets every gradient to `gradient` times the step's scale, and the loss to 7.
class GivenGradients final : public StepExecutor {
 public:
  GivenGradients(ModelPart& part, std::string& told) : part_(part), told_(told) {}
  void connect(StepContext) override {}
  StepLoss forward_backward(const StepBatches& batches) override {
    told_ += "run ";
    const nn::Parameter& parameter = *part_.parameters().front();
    EXPECT_FALSE(parameter.grad().defined()) << "of an earlier attempt";
    parameter.shard().mutable_grad() = at::full({3}, gradient * batches.gradient_scale);
    seen = &batches.microbatches;
    return {7};
  }
  StepLoss forward(const StepBatches&) override { return {}; }

  double gradient = 1;
  const std::vector<Batch>* seen = nullptr;

 private:
  ModelPart& part_;
  std::string& told_;
};

}  // namespace titan::core
