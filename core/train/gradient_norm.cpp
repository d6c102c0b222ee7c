#include "core/train/gradient_norm.h"

#include <algorithm>
#include <cmath>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "core/train/scalars.h"

namespace titan::core {
namespace {

/// Where every shard is on the device that communicates, this is the single-rank sum to the bit.
at::Tensor sum_of_squares(const std::vector<at::Tensor>& gradients, at::ScalarType dtype,
                          c10::Device device) {
  if (gradients.empty()) return at::zeros({}, at::TensorOptions().dtype(dtype).device(device));
  return at::stack(at::_foreach_norm(gradients, 2.0, dtype)).square().sum().to(device);
}

}  // namespace

bool counts_elements(const nn::Parameter& parameter, const dist::Mesh& mesh) {
  const auto is_cut_over = [&](std::string_view axis) {
    return std::any_of(
        parameter.shardings().begin(), parameter.shardings().end(), [&](const nn::Sharding& cut) {
          return cut.group == axis || (cut.group == "fsdp" && (axis == "dp_shard" || axis == "cp"));
        });
  };
  for (const char* axis : {"dp_replicate", "dp_shard", "cp", "tp"})
    if (!is_cut_over(axis) && mesh.group(axis).rank() != 0) return false;
  return true;
}

GradientNorm clip_gradients(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                            double max_norm) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients, counted;
  at::ScalarType dtype = at::kFloat;
  for (const nn::Parameter* parameter : part.parameters()) {
    if (parameter->shard().scalar_type() == at::kDouble) dtype = at::kDouble;
    at::Tensor gradient = parameter->grad();
    if (!gradient.defined()) continue;
    if (counts_elements(*parameter, mesh)) counted.push_back(gradient);
    gradients.push_back(std::move(gradient));
  }

  const at::Tensor total = sum_of_squares(counted, dtype, device);
  mesh.group("world").all_reduce(total, dist::Reduce::sum).wait();
  const double norm = std::sqrt(read_scalar(total));
  const double coefficient = max_norm / (norm + 1e-6);
  if (coefficient < 1) at::_foreach_mul_(gradients, coefficient);
  return {norm};
}

}  // namespace titan::core
