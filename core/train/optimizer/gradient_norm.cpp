#include "core/train/optimizer/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <titan/counted_elements.h>

#include "core/train/optimizer/scalars.h"

namespace titan::core {
namespace {

/// Number of elements that are summed in the gradients' dtype (at least fp32); these sums are added
/// in double. One long sum in fp32 would be wrong in the fifth digit, and differently so under
/// another layout.
constexpr int64_t kRowLength = 1024;

/// The dtype of a sum, at least fp32; absent if that is the gradients' own.
std::optional<at::ScalarType> wider_type(at::ScalarType type) {
  const at::ScalarType wide = c10::promoteTypes(type, at::kFloat);
  return wide == type ? std::nullopt : std::optional(wide);
}

at::Tensor sum_of_squares(const std::vector<at::Tensor>& gradients, c10::Device device) {
  std::vector<at::Tensor> norms;
  std::map<std::optional<at::ScalarType>, std::vector<at::Tensor>> short_ones;  // by wider_type
  for (const at::Tensor& gradient : gradients) {
    const std::optional<at::ScalarType> wide = wider_type(gradient.scalar_type());
    const at::Tensor flat = gradient.reshape({-1});
    const int64_t num_rows = flat.numel() / kRowLength, rest = flat.numel() % kRowLength;
    if (num_rows > 0)
      norms.push_back(at::linalg_vector_norm(
          flat.narrow(0, 0, num_rows * kRowLength).view({num_rows, kRowLength}), 2, {1},
          /*keepdim=*/false, wide));
    if (rest > 0) short_ones[wide].push_back(flat.narrow(0, num_rows * kRowLength, rest));
  }
  for (const auto& [wide, tensors] : short_ones)
    norms.push_back(at::stack(at::_foreach_norm(tensors, 2, wide)));
  if (norms.empty()) return at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device));
  return at::cat(norms).to(at::kDouble).square().sum().to(device);
}

/// The gradients of this rank.
struct Gradients {
  std::vector<at::Tensor> all, counted;
};

Gradients gradients_of(ModelPart& part, const dist::Mesh& mesh) {
  Gradients gradients;
  for (const nn::Parameter* parameter : part.parameters()) {
    at::Tensor gradient = parameter->grad();
    if (!gradient.defined()) continue;
    if (counts_elements(*parameter, mesh)) gradients.counted.push_back(gradient);
    gradients.all.push_back(std::move(gradient));
  }
  return gradients;
}

/// Rounds as a GPU's _foreach_mul_ does with a host number: to the dtype that it computes in, fp32
/// for narrower ones. (The CPU's rounds it to the narrow dtype.)
void multiply(const std::vector<at::Tensor>& gradients, const at::Tensor& coefficient) {
  std::map<std::pair<at::ScalarType, c10::DeviceType>, std::vector<at::Tensor>> alike;
  for (const at::Tensor& gradient : gradients)
    alike[{gradient.scalar_type(), gradient.device().type()}].push_back(gradient);
  for (auto& [form, tensors] : alike) {
    const at::ScalarType type = form.first;
    const at::ScalarType wide = c10::promoteTypes(type, at::kFloat);
    const at::Tensor factor = coefficient.to(tensors.front().device()).to(wide);
    if (type == wide) {
      at::_foreach_mul_(tensors, factor);
      continue;
    }
    for (at::Tensor& tensor : tensors) tensor.copy_(tensor.to(wide).mul_(factor));
  }
}

void multiply(const std::vector<at::Tensor>& gradients, double coefficient) {
  std::vector<at::Tensor> together;
  for (const at::Tensor& gradient : gradients) {
    const std::optional<at::ScalarType> wide = wider_type(gradient.scalar_type());
    if (wide && gradient.is_cpu())
      gradient.copy_(gradient.to(*wide).mul_(coefficient));
    else
      together.push_back(gradient);
  }
  if (!together.empty()) at::_foreach_mul_(together, coefficient);
}

Clipping measure(const std::vector<at::Tensor>& counted, const dist::Mesh& mesh, c10::Device device,
                 double max_norm, double gradient_scale) {
  const at::Tensor total = sum_of_squares(counted, device);
  mesh.group("world").all_reduce(total, dist::Reduce::sum).wait();
  const double norm = std::sqrt(read_scalar(total)) / gradient_scale;
  const double clipped = max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1;
  return {norm, clipped / gradient_scale};
}

UnseenClipping measure_unseen(const std::vector<at::Tensor>& counted, const dist::Mesh& mesh,
                              c10::Device device, double max_norm) {
  const at::Tensor total = sum_of_squares(counted, device);
  mesh.group("world").all_reduce(total, dist::Reduce::sum).wait();
  const at::Tensor norm = total.sqrt();
  if (max_norm <= 0) return {norm, {}};
  // not max_norm / tensor, which is the reciprocal times max_norm and rounds twice
  const at::Tensor limit = at::full({}, max_norm, total.options());
  return {norm, at::clamp_max(at::div(limit, norm + 1e-6), 1.0)};
}

}  // namespace

Clipping measure_clipping(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                          double max_norm, double gradient_scale) {
  at::NoGradGuard no_grad;
  return measure(gradients_of(part, mesh).counted, mesh, device, max_norm, gradient_scale);
}

UnseenClipping measure_clipping_unseen(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                                       double max_norm) {
  at::NoGradGuard no_grad;
  return measure_unseen(gradients_of(part, mesh).counted, mesh, device, max_norm);
}

GradientNorm clip_gradients(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                            double max_norm, double gradient_scale) {
  at::NoGradGuard no_grad;
  const Gradients gradients = gradients_of(part, mesh);
  const auto [norm, coefficient] =
      measure(gradients.counted, mesh, device, max_norm, gradient_scale);
  if (coefficient != 1) multiply(gradients.all, coefficient);
  return {norm};
}

at::Tensor clip_gradients_unseen(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                                 double max_norm) {
  at::NoGradGuard no_grad;
  const Gradients gradients = gradients_of(part, mesh);
  const auto [norm, coefficient] = measure_unseen(gradients.counted, mesh, device, max_norm);
  if (coefficient.defined()) multiply(gradients.all, coefficient);
  return norm;
}

}  // namespace titan::core
