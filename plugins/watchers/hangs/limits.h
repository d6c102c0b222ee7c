// How long each section of a training step may take, learned from the steps of a run. Used by
// Hangs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <titan/step_phase.h>
#include <titan/value.h>

namespace titan::hangs {

struct Options {
  double factor = 5;          ///< limit of a section / longest time seen
  double floor_seconds = 30;  ///< the least limit
  int64_t first_steps = 5;    ///< of a start; their times are learned apart
  int64_t update_every = 10;  ///< steps
  double look_every_seconds = 5;
};

/// A section is a phase of the step; `other` is the time outside of all scopes. The last section is
/// the whole step without validation, saves and waits for other ranks.
inline constexpr size_t kStep = kNumPhases;
inline constexpr size_t kNumSections = kNumPhases + 1;
/// Seconds by section; 0: never seen.
using Seconds = std::array<double, kNumSections>;

inline constexpr size_t section_of(StepPhase phase) {
  return static_cast<size_t>(phase);
}
/// "data"; "outside" for StepPhase::other, "step" for kStep.
std::string_view name_of_section(size_t section);

/// The longest times that one start of a run has seen, on this rank or on all. The first steps are
/// slower, because they compile, connect and fill caches, so they are apart.
struct Longest {
  Seconds first{}, later{};

  void add(const Seconds& seconds, bool is_first_step);
};

struct Limit {
  double seconds = 0;
  double longest = 0;  ///< what it was learned from
};

/// Rule of nvidia-resiliency-ext: limit = factor x longest; an update takes half of the old value
/// and half of the new one. Equal on all ranks, because `update` receives the maxima of all ranks.
class Limits {
 public:
  explicit Limits(const Options& options) : options_(options) {}

  /// `seen`: since the start of the program, over all ranks. Sections that were not seen keep what
  /// an earlier start has learned.
  void update(const Longest& seen);
  /// Absent while the section was never seen. In first steps at least the limit of later steps.
  std::optional<Limit> limit(size_t section, bool is_first_step) const;

  Value state() const;
  /// Throws a data Error if `state` does not fit.
  void restore(const Value& state);

 private:
  Options options_;
  Longest learned_;
};

}  // namespace titan::hangs
