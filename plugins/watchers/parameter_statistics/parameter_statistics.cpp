#include "parameter_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>
#include <titan/counted_elements.h>
#include <titan/error.h>
#include <titan/name_pattern.h>

namespace titan::parameter_statistics {
namespace {

constexpr int kLeastExponent = -40, kGreatestExponent = 20;
constexpr char kBeforeBin = '\x01';

/// -2^20 ... -2^-40, 0, 2^-40 ... 2^20; the outermost bins also count values beyond.
const std::vector<double>& all_edges() {
  static const std::vector<double> edges = [] {
    std::vector<double> made;
    for (int e = kGreatestExponent; e >= kLeastExponent; --e) made.push_back(-std::ldexp(1, e));
    made.push_back(0);
    for (int e = kLeastExponent; e <= kGreatestExponent; ++e) made.push_back(std::ldexp(1, e));
    return made;
  }();
  return edges;
}

double sum_of_squares(const at::Tensor& values) {
  const double norm =
      at::linalg_vector_norm(values, 2, at::OptionalIntArrayRef(), false, at::kDouble)
          .item<double>();
  return norm * norm;
}

/// The number of finite values in each bin.
std::vector<int64_t> counts_of(const at::Tensor& values, double scale) {
  static const at::Tensor inner = at::tensor(std::vector<double>(
      all_edges().begin() + 1, all_edges().end() - 1));  // outer bins count values beyond
  const at::Tensor flat = values.reshape({-1}).cpu().to(at::kDouble) / scale;
  const at::Tensor finite = flat.masked_select(flat.isfinite());
  const auto num_bins = static_cast<int64_t>(all_edges().size()) - 1;
  const at::Tensor counts =
      at::bincount(at::bucketize(finite, inner, /*out_int32=*/false, /*right=*/true), {}, num_bins);
  return {counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + num_bins};
}

/// The bins from the first to the last non-empty one.
Histogram as_histogram(std::string_view tag, const std::vector<double>& counts) {
  const auto is_filled = [](double count) { return count > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), is_filled);
  const auto last = std::find_if(counts.rbegin(), counts.rend(), is_filled).base();
  const auto edge = all_edges().begin() + (first - counts.begin());
  return {.tag = tag, .edges = {edge, edge + (last - first) + 1}, .counts = {first, last}};
}

}  // namespace

void ParameterStatistics::match(ModelPart& whole) {
  const auto parameters = whole.parameters();
  for (const std::string& pattern : options_.histograms)
    TITAN_CHECK(std::any_of(parameters.begin(), parameters.end(),
                            [&](const nn::Parameter* parameter) {
                              return matches_pattern(parameter->name(), pattern);
                            }),
                config, "metrics.histograms: '", pattern,
                "' fits no parameter of the model; there is '", parameters.front()->name(),
                "', and '*' stands for any text");
}

ParameterStatistics::ParameterStatistics(const Options& options, WatcherContext context)
    : options_(options), context_(std::move(context)) {}

std::string ParameterStatistics::group_of(const std::string& parameter) const {
  if (options_.norms == NormsOf::parameters) return parameter;
  for (const Layer& layer : part_->layers())
    if (parameter.starts_with(layer.name + ".")) return layer.name;
  return parameter.substr(0, parameter.rfind('.'));  // of a module in a layer of another name
}

void ParameterStatistics::reduced(Step& step) {
  bins_.clear();
  if (!is_logged(step.number)) return;
  const at::NoGradGuard no_grad;
  const double scale = step.batches.gradient_scale;
  const bool is_histogram_due = !options_.histograms.empty() &&
                                (step.number == 1 || step.number % options_.histogram_freq == 0);
  NamedTotals norms;
  for (const nn::Parameter* parameter : part_->parameters()) {
    if (parameter->is_state() || !counts_elements(*parameter, context_.mesh)) continue;
    if (options_.norms != NormsOf::none) add_norms(*parameter, scale, norms);
    if (is_histogram_due && matches_any(parameter->name(), options_.histograms))
      add_histograms(*parameter, scale, bins_);
  }
  const dist::Group& world = context_.mesh.group("world");
  const c10::Device device = context_.device.device();
  if (options_.norms != NormsOf::none)
    for (const auto& [name, total] : over_ranks(norms, world, device))
      step.scalars.push_back({tags_.emplace(name, name).first->second, total.value()});
  if (is_histogram_due) bins_ = over_ranks(bins_, world, device);
}

void ParameterStatistics::add_norms(const nn::Parameter& parameter, double gradient_scale,
                                    NamedTotals& totals) const {
  const std::string group = group_of(parameter.name());
  const auto add = [&](const std::string& tag, const at::Tensor& values, double scale) {
    totals[tag].add({sum_of_squares(values) / (scale * scale), 1, Combined::root_sum});
  };
  add("param_norm/" + group, parameter.shard(), 1);
  if (const at::Tensor gradient = parameter.grad(); gradient.defined())
    add("grad_norm/" + group, gradient, gradient_scale);
}

void ParameterStatistics::add_histograms(const nn::Parameter& parameter, double gradient_scale,
                                         NamedTotals& totals) const {
  const auto add = [&](const std::string& tag, const at::Tensor& values, double scale) {
    const std::vector<int64_t> counts = counts_of(values, scale);
    for (size_t bin = 0; bin < counts.size(); ++bin)
      if (counts[bin] > 0)
        totals[tag + kBeforeBin + std::to_string(bin)].add({static_cast<double>(counts[bin]), 1});
  };
  add("weights/" + parameter.name(), parameter.shard(), 1);
  if (const at::Tensor gradient = parameter.grad(); gradient.defined())
    add("gradients/" + parameter.name(), gradient, gradient_scale);
}

void ParameterStatistics::commit(const Step& step) {
  if (bins_.empty()) return;
  std::map<std::string, std::vector<double>> counts;
  for (const auto& [name, total] : bins_) {
    const size_t end = name.find(kBeforeBin);
    std::vector<double>& bins = counts[name.substr(0, end)];
    bins.resize(all_edges().size() - 1);
    bins[std::stoul(name.substr(end + 1))] = total.sum;
  }
  std::vector<Histogram> histograms;
  for (const auto& [tag, bins] : counts) histograms.push_back(as_histogram(tag, bins));
  context_.log.log_histograms(step.number, histograms);
  bins_.clear();
}

}  // namespace titan::parameter_statistics
