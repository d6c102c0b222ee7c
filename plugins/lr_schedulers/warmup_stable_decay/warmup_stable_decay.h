// LR scheduler `warmup_stable_decay`: linear warmup, a plateau, then a decay, as torchtitan's
// schedule.
#pragma once

#include <cstdint>
#include <optional>

#include <titan/lr_scheduler.h>

namespace titan::lr_schedulers {

enum class DecayType { linear, sqrt, cosine };

struct WarmupStableDecayOptions {
  int64_t warmup_steps = 200;                         ///< steps until the factor is 1
  std::optional<int64_t> total_steps = std::nullopt;  ///< schedule length; unset = [training] steps
  std::optional<double> decay_ratio = std::nullopt;   ///< decaying share; unset = all after warmup
  DecayType decay_type = DecayType::linear;
  double min_lr_factor = 0.0;  ///< final factor of the decay
};

/// With T = length, W = min(warmup_steps, T), D = round-half-even(T * decay_ratio), at most T - W,
/// and s = step - 1:
///
///   s < W           (s + 1) / W
///   s < T + 1 - D   1
///   else            min + (1 - min) * d(x),  x = (s - T + D) / D
///
/// where d(x) = 1 - x (linear), 1 - sqrt(x) (sqrt) or (1 + cos(pi x)) / 2 (cosine).
///
/// The last step has x = (D - 1) / D. After it the factor stays `min`, while torchtitan's would
/// fall below zero.
class WarmupStableDecay final : public LrScheduler {
 public:
  /// Shortens warmup or decay, with a warning, if they do not fit into the length. Throws a config
  /// Error for a length < 1.
  WarmupStableDecay(const WarmupStableDecayOptions& options, LrSchedulerContext context);

  double factor(int64_t step) const override;

 private:
  int64_t total_steps_;   // T
  int64_t warmup_steps_;  // W
  int64_t decay_steps_;   // D
  DecayType decay_type_;
  double min_lr_factor_;
};

}  // namespace titan::lr_schedulers
