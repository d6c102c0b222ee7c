#include <titan/loss_sum.h>

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

namespace titan {

void LossSum::add(const at::Tensor& loss) {
  if (loss.is_meta()) return;
  if (loss.is_cpu()) {
    host_sum_ += loss.item<double>();
    return;
  }
  const at::Tensor wide = loss.detach().to(at::kDouble);
  device_sum_ = device_sum_.defined() ? device_sum_ + wide : wide;
}

void LossSum::add(const LossSum& other) {
  host_sum_ += other.host_sum_;
  if (other.device_sum_.defined()) add(other.device_sum_);
}

void LossSum::sum_over(const dist::Group& group, c10::Device device) {
  if (device.is_cpu() || device.is_meta()) {
    host_sum_ = group.all_reduce(host_sum_, dist::Reduce::sum, device);
    return;
  }
  device_sum_ = device_sum_.defined()
                    ? device_sum_.clone()
                    : at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device));
  group.all_reduce(device_sum_, dist::Reduce::sum).wait();
}

StepLoss LossSum::loss(bool keep_on_device) const {
  if (!device_sum_.defined()) return {.normalized_sum = host_sum_};
  if (!keep_on_device) return {.normalized_sum = device_sum_.item<double>()};
  return {.normalized_sum = std::numeric_limits<double>::quiet_NaN(), .device_loss = device_sum_};
}

}  // namespace titan
