// Activation checkpointing @FULL_NAME@. As generated, a model's blocks save tensors for their backward in bfloat16.
// This halves the memory of these tensors and rounds the gradients.
// Select it with [activation_checkpoint] mode = "@FULL_NAME@". The same section holds its options.
#include <cstdint>
#include <memory>
#include <utility>

#include <titan/error.h>
#include <titan/nn/saved_tensors.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace {

struct @CLASS@Options {
  int64_t min_elements = 1024;  // smaller tensors are saved unchanged
};

/// One tensor from the forward, saved for the backward.
class NarrowTensor final : public titan::nn::SavedTensor {
 public:
  explicit NarrowTensor(const at::Tensor& tensor) : narrow_(tensor.to(at::kBFloat16)), dtype_(tensor.scalar_type()) {}
  at::Tensor unpack() override { return narrow_.to(dtype_); }

 private:
  at::Tensor narrow_;
  at::ScalarType dtype_;
};

/// Autograd calls pack() for every tensor that it saves while a block's forward runs. To drop tensors and compute
/// them again, keep the block's input and a copy of `next`, and run `next` in unpack(). See titan/recompute.h for
/// results that need not be computed again.
class NarrowTensors final : public titan::nn::SavedTensorHooks {
 public:
  explicit NarrowTensors(int64_t min_elements) : min_elements_(min_elements) {}

  std::unique_ptr<titan::nn::SavedTensor> pack(const at::Tensor& tensor) override {
    if (tensor.scalar_type() != at::kFloat || tensor.numel() < min_elements_)
      return std::make_unique<titan::nn::HeldTensor>(tensor);
    return std::make_unique<NarrowTensor>(tensor);
  }

 private:
  int64_t min_elements_;
};

class @CLASS@ final : public titan::ActivationCheckpoint {
 public:
  @CLASS@(const @CLASS@Options& options, const titan::TransformContext&)
      : hooks_(std::make_shared<NarrowTensors>(options.min_elements)) {}

  titan::Phase phase() const override { return titan::Phase::recompute; }

  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    int64_t num_blocks = 0;
    for (titan::Layer& layer : part.layers()) {
      if (!layer.is_block) continue;
      ++num_blocks;
      layer.module->wrap([hooks = hooks_](const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
        const titan::nn::SavedTensorScope scope(hooks.get());
        return next(x, batch);  // runs the block and all earlier wrappers
      });
    }
    TITAN_CHECK(num_blocks > 0 || context.pipeline, config, "the model has no blocks (Layer::is_block)");
  }

 private:
  std::shared_ptr<NarrowTensors> hooks_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Blocks keep their activations in bfloat16.")
      .option("min_elements", &@CLASS@Options::min_elements, "Smaller tensors are saved unchanged")
      .at_least(0);
}
