#include "activation_statistics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace titan::loggers {

std::vector<Observation> ActivationStatistics::observations() const {
  std::vector<Observation> asked;
  for (const std::string& pattern : options_.modules)
    asked.push_back({.modules = pattern, .what = Observed::output, .every = options_.every});
  return asked;
}

std::vector<ObservedNumber> ActivationStatistics::observe(const ObservedTensors& seen) {
  const at::Tensor y = seen.tensor.to(at::kDouble), is_finite = y.isfinite();
  const at::Tensor finite = at::where(is_finite, y, at::zeros({}, y.options()));
  const at::Tensor numbers =  // one transfer from the device
      at::stack({finite.square().sum(), finite.abs().amax(), (y == 0).sum().to(at::kDouble),
                 is_finite.sum().to(at::kDouble)})
          .cpu();
  const double* number = numbers.const_data_ptr<double>();
  const auto count = static_cast<double>(y.numel());
  const std::string path(seen.module);
  return {{"activations/rms/" + path, number[0], number[3], Combined::root_mean},
          {"activations/max/" + path, number[1], number[3], Combined::greatest},
          {"activations/zeros/" + path, number[2], count, Combined::mean},
          {"activations/not_finite/" + path, count - number[3], count, Combined::mean}};
}

}  // namespace titan::loggers
