// Medians and their confidence intervals. Used by titan bench for step times and for ratios of
// pairs.
#pragma once

#include <optional>
#include <vector>

namespace titan::commands {

/// NaN for no values; the mean of the two middle ones for an even number.
double median(std::vector<double> values);

struct MedianInterval {
  double median = 0;
  /// Absent when there are too few values for `confidence`: five or less for 95 %.
  std::optional<double> low, high;
};

/// Confidence interval for the median of the underlying distribution, of any shape: two order
/// statistics that cover it with probability at least `confidence`, by inverting the sign test.
/// With Bin(n, 1/2) = B it is [x_(k), x_(n+1-k)] for the largest k with P(B <= k - 1) <= (1 -
/// confidence) / 2 (Conover, Practical Nonparametric Statistics, 1999, 3.2).
MedianInterval median_interval(std::vector<double> values, double confidence = 0.95);

}  // namespace titan::commands
