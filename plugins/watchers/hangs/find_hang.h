// Whether a rank hangs, from what it does and the learned limits. Used by Hangs.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "limits.h"

namespace titan::hangs {

/// What one rank does at one moment.
struct Situation {
  StepPhase phase = StepPhase::other;
  Seconds now{};               ///< of this step so far, by section
  Seconds before{};            ///< of the step before
  bool is_first_step = false;  ///< one of the first steps of this start
  /// How long this rank has waited for other ranks in its current collective; unset: it does not
  /// wait.
  std::optional<double> waits = {};
  double patience = 0;  ///< added to the limit of waits, so that the rank waited for reports first
};

struct Finding {
  bool waits = false;      ///< for another rank, which hangs
  size_t section = kStep;  ///< that is above its limit; not for waits
  double seconds = 0;
  Limit limit;  ///< of waits: without `longest`
  /// [waits] The sections in which the other rank may be, and their limits.
  std::vector<std::pair<size_t, Limit>> parts = {};
};

/// A rank that does not wait is judged by the limits of its section and of the step. A rank that
/// waits gives the others the time of everything that they may still do: the step, and validation
/// or a save if this rank had one in this step or the one before. Without a limit of one of these
/// it waits for ever.
std::optional<Finding> find_hang(const Situation& situation, const Limits& limits);

}  // namespace titan::hangs
