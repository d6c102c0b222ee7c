#include "step_guard.h"

#include <bit>
#include <cstddef>

#include <ATen/ops/equal.h>

namespace step_guard {
namespace {

bool have_equal_bits(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  const auto bytes = [](const at::Tensor& t) { return t.reshape({-1}).view(at::kByte); };
  return a.is_meta() || at::equal(bytes(a), bytes(b));
}

}  // namespace

titan::StepLoss StepGuard::forward_backward(const titan::StepBatches& batches) {
  difference_.clear();
  const titan::StepLoss first = inner().forward_backward(batches);
  if (!options_.runs_twice) return first;
  std::vector<at::Tensor> gradients;
  for (const titan::nn::Parameter* parameter : part_->parameters())
    gradients.push_back(parameter->grad());
  part_->clear_gradients();

  const titan::StepLoss second = inner().forward_backward(batches);
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  if (bits(first.normalized_sum) != bits(second.normalized_sum)) difference_ = "the loss";
  for (size_t i = 0; i < gradients.size(); ++i)
    if (!have_equal_bits(gradients[i], part_->parameters()[i]->grad()))
      difference_ = "the gradient of '" + part_->parameters()[i]->name() + "'";
  return second;
}

titan::Judgement StepGuard::judge(const titan::Step& step) {
  const std::string again = "; step " + std::to_string(step.number) + " is run again";
  if (!difference_.empty())
    return {titan::Verdict::repeat, difference_ + " differed between two runs" + again};
  if (step.attempt == 1 && is_drill(step.number))
    return {titan::Verdict::repeat, "a drill" + again};
  return {};
}

/// By SplitMix64. Steele et al., 2014.
bool StepGuard::is_drill(int64_t number) const {
  uint64_t x = static_cast<uint64_t>(number) * 0x9e3779b97f4a7c15u +
               static_cast<uint64_t>(options_.seed) * 0xd1342543de82ef95u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53 < options_.drill_share;
}

}  // namespace step_guard
