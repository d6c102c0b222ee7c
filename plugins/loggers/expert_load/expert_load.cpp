#include "expert_load.h"

#include <algorithm>
#include <string_view>

#include <ATen/TensorOperators.h>

namespace titan::loggers {
namespace {

constexpr std::string_view kChoice = ".choice";  // the child of a router that holds its choices

/// The choices (B, S, k) of all tokens except padding, concatenated.
at::Tensor without_padding(const ObservedTensors& seen) {
  const at::Tensor is_padding = seen.batch.padding_of(seen.tensor.size(1));
  if (!is_padding.defined()) return seen.tensor.flatten();
  return seen.tensor.masked_select(is_padding.logical_not().unsqueeze(-1));
}

}  // namespace

/// For each router its scores, whose width is the number of experts, then its choices.
std::vector<Observation> ExpertLoad::observations() const {
  std::vector<Observation> asked;
  for (const std::string& pattern : options_.routers)
    for (const std::string& path : {pattern, pattern + std::string(kChoice)})
      asked.push_back({.modules = path, .what = Observed::output, .every = options_.every});
  return asked;
}

std::vector<ObservedNumber> ExpertLoad::observe(const ObservedTensors& seen) {
  if (seen.index % 2 == 0) {
    num_experts_[std::string(seen.module)] = seen.tensor.size(-1);
    return {};
  }
  const std::string router(seen.module.substr(0, seen.module.size() - kChoice.size()));
  const std::string moe = router.substr(0, router.rfind('.'));
  const int64_t num_experts = num_experts_.at(router);
  const at::Tensor chosen = without_padding(seen).cpu();
  std::vector<int64_t> counts(static_cast<size_t>(num_experts));
  const int64_t* expert = chosen.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < chosen.numel(); ++i) ++counts[static_cast<size_t>(expert[i])];

  const double all = static_cast<double>(chosen.numel()), n = static_cast<double>(num_experts);
  if (all == 0) return {};
  const auto fullest = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const auto idle = static_cast<double>(std::count(counts.begin(), counts.end(), int64_t{0}));
  std::vector<ObservedNumber> numbers = {
      {"experts/max_over_mean/" + moe, fullest * n / all, 1, Combined::greatest},
      {"experts/idle/" + moe, idle, n, Combined::mean}};
  for (size_t i = 0; options_.each_expert && i < counts.size(); ++i)
    numbers.push_back({"experts/load/" + moe + "/" + std::to_string(i),
                       static_cast<double>(counts[i]) * n, all, Combined::mean});
  return numbers;
}

}  // namespace titan::loggers
