// Keeps loss and gradient norm on the device in steps that are not logged. Reading a number from a
// GPU makes the host wait for it, and leaves the GPU without queued work meanwhile. A member of the
// step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/step.h>

namespace titan::core {

/// In a step that is held (neither logged nor saved), StepLoss::normalized_sum may be NaN and
/// Step::norm is unset. The next step that is not held checks the held ones, before its update. By
/// then a bad step and the steps after it have updated the weights, and the run ends.
class DeviceScalars final : public StepMember {
 public:
  /// `is_looked_at`: whether a step, given by its number, is logged or saved.
  explicit DeviceScalars(std::function<bool(int64_t)> is_looked_at)
      : is_looked_at_(std::move(is_looked_at)) {}

  /// Whether the current step is held.
  bool is_holding() const { return is_holding_; }
  /// One element, fp64, on the device.
  void set_norm(at::Tensor norm) { current_.norm = std::move(norm); }
  /// Waits for the device. Throws a data Error if the loss or the norm of a held step is NaN or
  /// infinite.
  void require_finite();

  bool undoes_steps() const override { return false; }
  /// Sets StepBatches::keep_loss_on_device, which asks the executor to leave the loss on the
  /// device.
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
  std::vector<Held> held_;  // committed, not yet read
};

}  // namespace titan::core
