#include <titan/loss_sum.h>

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

namespace titan {

void LossSum::add(const at::Tensor& loss) {
  if (loss.is_meta()) return;
  if (loss.is_cpu()) {
    here_ += loss.item<double>();
    return;
  }
  const at::Tensor wide = loss.detach().to(at::kDouble);
  there_ = there_.defined() ? there_ + wide : wide;
}

void LossSum::add(const LossSum& other) {
  here_ += other.here_;
  if (other.there_.defined()) add(other.there_);
}

void LossSum::sum_over(const dist::Group& group, c10::Device device) {
  if (device.is_cpu() || device.is_meta()) {
    here_ = group.all_reduce(here_, dist::Reduce::sum, device);
    return;
  }
  there_ = there_.defined() ? there_.clone()
                            : at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device));
  group.all_reduce(there_, dist::Reduce::sum).wait();
}

StepLoss LossSum::loss(bool stays) const {
  if (!there_.defined()) return {.normalized_sum = here_};
  if (!stays) return {.normalized_sum = there_.item<double>()};
  return {.normalized_sum = std::numeric_limits<double>::quiet_NaN(), .left = there_};
}

}  // namespace titan
