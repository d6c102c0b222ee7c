#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace titan::commands {
namespace {

/// ln of n over k
double log_choices(size_t n, size_t k) {
  const auto gamma = [](size_t count) { return std::lgamma(static_cast<double>(count) + 1); };
  return gamma(n) - gamma(k) - gamma(n - k);
}

/// The largest k with P(Bin(n, 1/2) <= k - 1) <= tail; 0 when there is none.
size_t outermost_rank(size_t n, double tail) {
  double below = 0;
  for (size_t k = 0; k < n; ++k) {
    below += std::exp(log_choices(n, k) - static_cast<double>(n) * std::log(2.0));
    if (below > tail) return k;
  }
  return 0;
}

double median_of_sorted(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  if (n == 0) return std::numeric_limits<double>::quiet_NaN();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return median_of_sorted(values);
}

MedianInterval median_interval(std::vector<double> values, double confidence) {
  std::sort(values.begin(), values.end());
  MedianInterval interval{.median = median_of_sorted(values), .low = {}, .high = {}};
  if (const size_t k = outermost_rank(values.size(), (1 - confidence) / 2); k > 0) {
    interval.low = values[k - 1];
    interval.high = values[values.size() - k];
  }
  return interval;
}

}  // namespace titan::commands
