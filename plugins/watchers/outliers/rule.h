// When a number of a step is too large, judged by those of earlier steps. No torch.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include <titan/value.h>

namespace titan::outliers {

/// Options of the watcher; a Series reads the first five.
struct Options {
  int64_t window = 128;      ///< committed values that mean and sigma are taken from
  int64_t minimum = 64;      ///< values before the rule judges
  double sigmas = 6;         ///< 0: this rule is off
  double times_largest = 0;  ///< 0: this rule is off; Megatron-LM: 10
  int64_t largest_of = 100;  ///< values of which `times_largest` takes the greatest

  bool skip_nonfinite = true;
  bool rerun = false;
  int64_t most_in_row = 10;
  bool name_rows = true;
};

/// Why a value is too large.
struct Excess {
  enum class Kind { sigmas, largest };
  Kind kind = Kind::sigmas;
  double limit = 0;
  double mean = 0, sigma = 0;  ///< of the window
  double largest = 0;          ///< magnitude among the first `largest_of` values
  int64_t num_values = 0;      ///< in the window
};

/// The finite values of the committed steps of one kind, such as losses.
///
/// Two rules: more than `sigmas` standard deviations (of a sample, divisor n - 1) above the mean of
/// the window (OLMo-core's SkipStepOptimizer); at least `times_largest` the greatest magnitude of
/// the first values (Megatron-LM's rerun_state_machine).
class Series {
 public:
  explicit Series(const Options& options) : options_(options) {}

  /// Unset if `value`, which is finite, is not too large.
  std::optional<Excess> judge(double value) const;
  void add(double value);

  Value state() const;
  /// Throws a data Error if `state` is not one of a series.
  void restore(const Value& state);

 private:
  Options options_;
  std::deque<double> window_;  // oldest first, at most options_.window
  double largest_ = 0;         // magnitude among the first values
  int64_t num_first_ = 0;      // how many of them there were
};

}  // namespace titan::outliers
