#include "core/train/optimizer/device_scalars.h"

#include <cmath>
#include <utility>

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <titan/error.h>

namespace titan::core {
namespace {

/// Maximum number of consecutive held steps; each keeps two numbers on the device.
constexpr size_t kMostHeld = 1024;

}  // namespace

void DeviceScalars::begin(Step& step) {
  is_holding_ = !is_looked_at_(step.number) && held_.size() < kMostHeld;
  current_ = {.step = step.number};
  step.batches.keep_loss_on_device = is_holding_;
}

void DeviceScalars::reduced(Step& step) {
  if (!is_holding_) return;
  current_.loss = step.loss.device_loss.defined()
                      ? step.loss.device_loss
                      : at::scalar_tensor(step.loss.normalized_sum, at::kDouble);
}

Judgement DeviceScalars::judge(const Step&) {
  if (!is_holding_) require_finite();
  return {};
}

void DeviceScalars::commit(const Step&) {
  if (is_holding_) held_.push_back(std::exchange(current_, {}));
}

void DeviceScalars::require_finite() {
  const std::vector<Held> held = std::exchange(held_, {});
  if (held.empty()) return;
  std::vector<at::Tensor> numbers;
  for (const Held& one : held) {
    numbers.push_back(one.loss.to(one.norm.device()));
    numbers.push_back(one.norm);
  }
  const at::Tensor read = at::stack(numbers).cpu();
  const double* const value = read.const_data_ptr<double>();
  for (size_t i = 0; i < held.size(); ++i)
    TITAN_CHECK(
        std::isfinite(value[2 * i]) && std::isfinite(value[2 * i + 1]), data, "step ", held[i].step,
        " had loss ", value[2 * i], " and gradient norm ", value[2 * i + 1],
        "; it was not logged, so this was seen only now, and the weights were changed by it "
        "and by the steps after it, which are not saved. Lower optimizer.lr, lengthen "
        "lr_scheduler.warmup_steps or look at the data of that step; metrics.log_freq = 1 "
        "ends the run before the weights change");
}

}  // namespace titan::core
