#include "core/train/logging/slowest_rank.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <titan/log.h>

namespace titan::core {
namespace {

double total(const StepClock::Seconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

/// Validation is not part of the steps; all ranks wait for other replica groups.
bool is_work(StepPhase phase) {
  return phase != StepPhase::communication && phase != StepPhase::validation &&
         phase != StepPhase::replicas;
}

double work(const StepClock::Seconds& seconds) {
  double sum = 0;
  for (size_t phase = 0; phase < kNumPhases; ++phase)
    if (is_work(static_cast<StepPhase>(phase))) sum += seconds[phase];
  return sum;
}

std::vector<StepClock::Seconds> gathered(const StepClock::Seconds& own, const dist::Group& world,
                                         c10::Device device) {
  const auto count = static_cast<int64_t>(own.size());
  StepClock::Seconds sent = own;
  const at::Tensor mine =
      at::from_blob(sent.data(), {count}, at::kDouble).to(device, at::kDouble, false, true);
  const at::Tensor all = at::empty({world.size() * count}, mine.options());
  world.all_gather(all, mine).wait();
  const at::Tensor here = all.cpu();
  std::vector<StepClock::Seconds> ranks(static_cast<size_t>(world.size()));
  std::memcpy(ranks.data(), here.const_data_ptr<double>(), here.nbytes());
  return ranks;
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(100 * share + 0.5)) + " %";
}

}  // namespace

SlowestRank::Finding SlowestRank::find(const std::vector<StepClock::Seconds>& ranks) {
  std::vector<size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return work(ranks[a]) < work(ranks[b]); });
  const StepClock::Seconds& median = ranks[order[(order.size() - 1) / 2]];
  const StepClock::Seconds& slowest = ranks[order.back()];
  Finding finding = {.rank = static_cast<int64_t>(order.back()),
                     .excess = work(slowest) - work(median),
                     .time = total(slowest) - slowest[static_cast<size_t>(StepPhase::validation)]};
  double furthest = 0;
  for (size_t phase = 0; phase < kNumPhases; ++phase) {
    const auto which = static_cast<StepPhase>(phase);
    const double over = slowest[phase] - median[phase];
    if (!is_work(which) || over <= furthest) continue;
    furthest = over;
    finding.phase = which;
  }
  return finding;
}

std::vector<Scalar> SlowestRank::look(const StepClock::Seconds& own, const dist::Group& world,
                                      c10::Device device) {
  if (world.size() == 1) return {};
  const Finding finding = find(gathered(own, world, device));
  warn_if_lasting(finding, world.rank() == 0);
  if (finding.time <= 0) return {};
  return {{"time_metrics/slowest_rank", static_cast<double>(finding.rank)},
          {"time_metrics/slowest_rank_excess(%)", 100 * finding.excess / finding.time}};
}

void SlowestRank::warn_if_lasting(const Finding& finding, bool speaks) {
  const bool is_slow = finding.excess > kShare * finding.time;
  if (!is_slow || finding.rank != rank_) {
    rank_ = is_slow ? finding.rank : -1;
    num_intervals_ = 0;
    window_seconds_ = window_excess_ = 0;
    has_warned_ = false;
  }
  if (!is_slow) return;
  ++num_intervals_;
  window_seconds_ += finding.time;
  window_excess_ += finding.excess;
  if (has_warned_ || num_intervals_ < kWindowIntervals || window_seconds_ < kWindowSeconds) return;
  has_warned_ = true;
  if (!speaks) return;
  log::warn("rank " + std::to_string(finding.rank) + " has been the slowest for " +
            std::to_string(num_intervals_) + " logged steps: its work takes " +
            percent(window_excess_ / window_seconds_) +
            " of the time more than that of the median rank, most of it in " +
            std::string(name_of(finding.phase)) + "; the others wait for it");
}

}  // namespace titan::core
