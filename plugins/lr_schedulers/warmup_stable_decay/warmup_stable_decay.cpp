// See warmup_stable_decay.h.
#include "warmup_stable_decay.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <titan/error.h>
#include <titan/log.h>

namespace titan::lr_schedulers {
namespace {

/// min(steps, limit), with a warning if `limit` is less.
int64_t fit(const char* what, int64_t steps, int64_t limit, int64_t total_steps) {
  if (steps <= limit) return steps;
  log::warn(detail::concat("lr_scheduler: ", what, " takes ", steps, " steps, but only ", limit,
                           " of the schedule's ", total_steps,
                           " are left for it; it is shortened to ", limit));
  return limit;
}

double decay(DecayType type, double x) {
  switch (type) {
    case DecayType::linear:
      return 1 - x;
    case DecayType::sqrt:
      return 1 - std::sqrt(x);
    case DecayType::cosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * x));
  }
  TITAN_ASSERT(false, "unknown decay type ", static_cast<int>(type));
}

}  // namespace

WarmupStableDecay::WarmupStableDecay(const WarmupStableDecayOptions& options,
                                     LrSchedulerContext context)
    : total_steps_(options.total_steps.value_or(context.training_steps)),
      decay_type_(options.decay_type),
      min_lr_factor_(options.min_lr_factor) {
  TITAN_CHECK(total_steps_ >= 1, config,
              "the learning rate schedule must have at least 1 step, got ", total_steps_);
  warmup_steps_ = fit("warmup", options.warmup_steps, total_steps_, total_steps_);
  const int64_t rest = total_steps_ - warmup_steps_;
  decay_steps_ = rest;
  if (options.decay_ratio) {
    // rounds halves to even, as torchtitan does
    const double steps = std::nearbyint(static_cast<double>(total_steps_) * *options.decay_ratio);
    decay_steps_ = fit("decay", static_cast<int64_t>(steps), rest, total_steps_);
  }
}

double WarmupStableDecay::factor(int64_t step) const {
  TITAN_ASSERT(step >= 1, "steps count from 1, got ", step);
  const int64_t s = step - 1;
  if (s < warmup_steps_) return static_cast<double>(s + 1) / static_cast<double>(warmup_steps_);
  if (s < total_steps_ + 1 - decay_steps_ || decay_steps_ == 0) return 1;
  const int64_t done = std::min(s - total_steps_ + decay_steps_, decay_steps_);
  const double x = static_cast<double>(done) / static_cast<double>(decay_steps_);
  return min_lr_factor_ + (1 - min_lr_factor_) * decay(decay_type_, x);
}

}  // namespace titan::lr_schedulers
