// Loss and gradient norm of the steps that nobody looks at. To read a number of a GPU its host has
// to wait until the GPU has computed it, and has nothing ready for it then; so these stay there
// until a step is logged. A member of the step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/step.h>

namespace titan::core {

/// While a step is held, StepLoss::normalized_sum may be no number and Step::norm is none: whoever
/// needs them has the step looked at. That no held step went bad is checked when the next one is
/// looked at, before its update; the updates of the held steps after a bad one have been made by
/// then, and the run ends.
class HeldNumbers final : public StepMember {
 public:
  /// `is_looked_at`: of a step's number; those that are logged or saved.
  explicit HeldNumbers(std::function<bool(int64_t)> is_looked_at)
      : is_looked_at_(std::move(is_looked_at)) {}

  /// Of the step that has begun.
  bool is_holding() const { return is_holding_; }
  /// One element, fp64, on the device.
  void set_norm(at::Tensor norm) { current_.norm = std::move(norm); }
  /// Waits for the device. A data Error where the loss or the norm of a held step is not finite.
  void require_finite();

  bool undoes_steps() const override { return false; }
  /// Tells what runs the microbatches, by StepBatches::loss_stays.
  void begin(Step& step) override;
  void reduced(Step& step) override;
  Judgement judge(const Step& step) override;
  void commit(const Step& step) override;

 private:
  struct Held {
    int64_t step = 0;
    at::Tensor loss, norm;
  };

  std::function<bool(int64_t)> is_looked_at_;
  bool is_holding_ = false;
  Held current_;
  std::vector<Held> held_;  // committed, not yet looked at
};

}  // namespace titan::core
