#include "core/train/loss/loss_parts.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/graph_task.h>

namespace titan::core {

void LossParts::take(const std::vector<at::Tensor>& parts) {
  if (names_.empty() || torch::autograd::get_current_graph_task_id() != -1) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> wide;
  for (const at::Tensor& part : parts) wide.push_back(part.to(at::kDouble));
  const at::Tensor sums = at::stack(wide);
  if (sums_.defined())
    sums_.add_(sums);
  else
    sums_ = sums;
}

/// Ranks of tp compute the same parts; only one rank of a pipeline has the head.
std::map<std::string, double> LossParts::sums(const dist::Mesh& mesh, c10::Device device) const {
  std::map<std::string, double> found;
  if (names_.empty()) return found;
  const auto size = static_cast<int64_t>(names_.size());
  const at::Tensor total = sums_.defined()
                               ? sums_.clone()
                               : at::zeros({size}, at::TensorOptions(at::kDouble).device(device));
  for (const char* group : {"loss", "pp"})
    mesh.group(group).all_reduce(total, dist::Reduce::sum).wait();
  const at::Tensor values = total.cpu();
  for (size_t i = 0; i < names_.size(); ++i) found[names_[i]] = values.const_data_ptr<double>()[i];
  return found;
}

std::vector<Scalar> LossParts::scalars(const std::string& prefix,
                                       const std::map<std::string, double>& sums,
                                       int64_t num_terms) {
  std::vector<Scalar> scalars;
  for (const auto& [name, sum] : sums) {
    const std::string& tag = tags_.emplace(prefix + name, prefix + name).first->second;
    scalars.push_back({tag, sum / static_cast<double>(std::max<int64_t>(1, num_terms))});
  }
  return scalars;
}

}  // namespace titan::core
