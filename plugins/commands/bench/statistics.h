// Medians and how far they can be trusted. Used by titan bench for steps and for ratios of pairs.
#pragma once

#include <optional>
#include <vector>

namespace titan::commands {

/// NaN of no values; the mean of the two middle ones of an even number.
double median(std::vector<double> values);

struct MedianInterval {
  double median = 0;
  /// Absent when there are too few values for `confidence`: five or less for 95 %.
  std::optional<double> low, high;
};

/// The interval between two order statistics that covers the median of what the values were drawn
/// from with at least `confidence` probability, whatever its distribution: the sign test turned
/// around. With Bin(n, 1/2) = B it is [x_(k), x_(n+1-k)] for the largest k with
/// P(B <= k - 1) <= (1 - confidence) / 2 (Conover, Practical Nonparametric Statistics, 1999, 3.2).
MedianInterval median_interval(std::vector<double> values, double confidence = 0.95);

}  // namespace titan::commands
