// Activation checkpointing with one defect each, for the conformance kit. Each is written from the
// one sentence of its test.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <titan/nn/saved_tensors.h>

#include "transforms.h"

namespace {

using wrong::When;

/// One run of a block: its input is kept, its saved tensors are computed again.
class Run final : public titan::nn::SavedTensorHooks,
                  public titan::RecomputeScope,
                  public std::enable_shared_from_this<Run> {
 public:
  Run(at::Tensor x, titan::Batch batch, titan::nn::Next next,
      std::shared_ptr<wrong::Trigger> trigger)
      : x_(x.detach()),
        needs_grad_(x.requires_grad()),
        batch_(std::move(batch)),
        next_(std::move(next)),
        trigger_(std::move(trigger)) {}

  std::unique_ptr<titan::nn::SavedTensor> pack(const at::Tensor& tensor) override {
    if (is_again_) {
      made_.push_back(tensor);
      return std::make_unique<titan::nn::HeldTensor>(at::Tensor());
    }
    return std::make_unique<Dropped>(shared_from_this(), num_saved_++);
  }
  std::vector<at::Tensor> run(const titan::Operation&, const Compute& compute) override {
    return compute();
  }
  bool runs_again() const override { return is_again_; }

 private:
  class Dropped final : public titan::nn::SavedTensor {
   public:
    Dropped(std::shared_ptr<Run> run, size_t index) : run_(std::move(run)), index_(index) {}
    at::Tensor unpack() override { return run_->at(index_); }

   private:
    std::shared_ptr<Run> run_;
    size_t index_;
  };

  at::Tensor at(size_t index) {
    if (!is_again_) {
      is_again_ = true;
      const titan::nn::SavedTensorScope saved(this);
      const Entry entry(this);
      const at::AutoGradMode recording(true);
      // the defect: the block is computed again from another input
      next_(((*trigger_)() ? x_ * 1.01 : x_).detach().set_requires_grad(needs_grad_), batch_);
    }
    return made_.at(index);
  }

  at::Tensor x_;
  bool needs_grad_;
  titan::Batch batch_;
  titan::nn::Next next_;
  std::shared_ptr<wrong::Trigger> trigger_;
  std::vector<at::Tensor> made_;
  size_t num_saved_ = 0;
  bool is_again_ = false;
};

/// Recomputes each block; wrong if `when`.
template <When when>
class Recompute : public titan::ActivationCheckpoint {
 public:
  explicit Recompute(const titan::TransformContext&) {}
  titan::Phase phase() const override { return titan::Phase::recompute; }
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    const auto trigger = std::make_shared<wrong::Trigger>(when, part, context);
    for (titan::Layer& layer : part.layers())
      if (layer.is_block)
        layer.module->wrap(
            [trigger](const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
              if (!at::GradMode::is_enabled()) return next(x, batch);
              const auto run = std::make_shared<Run>(x, batch, next, trigger);
              const titan::nn::SavedTensorScope saved(run.get());
              const titan::RecomputeScope::Entry entry(run.get());
              return next(x, batch);
            });
  }
};

using Right = Recompute<When::never>;

class Empty final : public titan::ActivationCheckpoint {
 public:
  explicit Empty(const titan::TransformContext&) {}
  titan::Phase phase() const override { return {}; }
  void apply(titan::ModelPart&, const titan::TransformContext&) override {}
};

/// Keeps everything that a run without it keeps.
class SavesMemory final : public titan::ActivationCheckpoint, public titan::nn::SavedTensorHooks {
 public:
  explicit SavesMemory(const titan::TransformContext&) {}
  titan::Phase phase() const override { return titan::Phase::recompute; }
  void apply(titan::ModelPart& part, const titan::TransformContext&) override {
    for (titan::Layer& layer : part.layers())
      if (layer.is_block)
        layer.module->wrap(
            [this](const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
              const titan::nn::SavedTensorScope saved(this);
              return next(x, batch);
            });
  }
  std::unique_ptr<titan::nn::SavedTensor> pack(const at::Tensor& tensor) override {
    return std::make_unique<titan::nn::HeldTensor>(tensor);
  }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Right>("wrong/right", "Correct.");
  plugin.add<Recompute<When::always>>("wrong/values", "Computes again from another input.");
  plugin.add<Recompute<When::fsdp>>("wrong/layout_fsdp", "The same under FSDP.");
  plugin.add<Recompute<When::tensor>>("wrong/layout_tensor", "The same under tensor parallelism.");
  plugin.add<Recompute<When::pipeline>>("wrong/layout_pipeline", "The same in a pipeline.");
  plugin.add<SavesMemory>("wrong/saves_memory", "Keeps everything.");
  wrong::add_interfaces<Right>(plugin);
}
