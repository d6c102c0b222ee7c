#include "weight_scales.h"

#include <set>
#include <string>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <titan/error.h>
#include <titan/nn/cuts.h>

#include "../common/quantized_linear.h"

namespace titan::float8 {
namespace {

/// The groups over which the weights are sharded, in an order that is equal on all ranks.
std::set<std::string> groups_of(const std::vector<std::shared_ptr<WeightScale>>& scales) {
  std::set<std::string> names;
  for (const auto& scale : scales)
    for (std::string& name : nn::cut_groups(scale->weight())) names.insert(std::move(name));
  return names;
}

}  // namespace

const at::Tensor& WeightScale::value() {
  if (!all_->are_known()) all_->update();
  return value_;
}

WeightScales::WeightScales(const dist::Mesh& mesh, c10::Device device, at::ScalarType compute_dtype,
                           ScaleRounding rounding)
    : mesh_(mesh), device_(device), compute_dtype_(compute_dtype), rounding_(rounding) {}

std::shared_ptr<WeightScale> WeightScales::add(nn::Parameter& weight) {
  auto scale = std::make_shared<WeightScale>(shared_from_this(), weight);
  scales_.push_back(scale);
  return scale;
}

std::vector<std::shared_ptr<WeightScale>> WeightScales::alive() const {
  std::vector<std::shared_ptr<WeightScale>> scales;
  for (const std::weak_ptr<WeightScale>& scale : scales_)
    if (auto held = scale.lock()) scales.push_back(std::move(held));
  return scales;
}

void WeightScales::update() {
  are_known_ = true;
  const auto scales = alive();
  if (scales.empty()) return;
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  std::vector<at::Tensor> maxima;
  for (const auto& scale : scales)
    maxima.push_back(quantized::largest_magnitude(scale->weight_.shard().detach())
                         .to(compute_dtype_)
                         .to(at::TensorOptions().device(device_).dtype(at::kFloat)));
  const at::Tensor all = at::stack(maxima);
  for (const std::string& name : groups_of(scales))
    if (const dist::Group& group = mesh_.group(name); group.size() > 1)
      group.all_reduce(all, dist::Reduce::max).wait();
  const std::vector<at::Tensor> values = scale_of(all, at::kFloat8_e4m3fn, rounding_).unbind();
  for (size_t i = 0; i < scales.size(); ++i) scales[i]->value_ = values[i];
}

}  // namespace titan::float8
