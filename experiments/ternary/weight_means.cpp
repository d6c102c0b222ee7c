#include "weight_means.h"

#include <map>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include <titan/nn/cuts.h>

namespace ternary {

std::shared_ptr<WeightMeans::Mean> WeightMeans::add(titan::nn::Parameter& weight) {
  auto mean = std::make_shared<Mean>(weight, at::Tensor());
  means_.push_back(mean);
  return mean;
}

const at::Tensor& WeightMeans::value(const Mean& mean) {
  if (!are_known_) update();
  return mean.value;
}

void WeightMeans::update() {
  are_known_ = true;
  const at::NoGradGuard no_grad;
  std::map<std::vector<std::string>, std::vector<std::shared_ptr<Mean>>> by_groups;
  for (const std::weak_ptr<Mean>& mean : means_)
    if (auto held = mean.lock()) by_groups[titan::nn::cut_groups(held->weight)].push_back(std::move(held));
  for (const auto& [groups, means] : by_groups) {
    std::vector<at::Tensor> sums;
    for (const auto& mean : means)
      sums.push_back(mean->weight.shard().detach().abs().sum(at::kDouble).to(device_));
    const at::Tensor all = at::stack(sums);
    for (const std::string& name : groups)
      if (const titan::dist::Group& group = mesh_.group(name); group.size() > 1)
        group.all_reduce(all, titan::dist::Reduce::sum).wait();
    const std::vector<at::Tensor> values = all.unbind();
    for (size_t i = 0; i < means.size(); ++i)
      means[i]->value = values[i] / static_cast<double>(means[i]->weight.global_num_elements());
  }
}

}  // namespace ternary
