#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/math/distributions/students_t.hpp>

namespace titan::commands {
namespace {

constexpr double kTail = 0.025;  // of each side of the 95 % interval

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double half_width_of(const std::vector<double>& values, double mean) {
  const auto count = static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (count - 1));
  const boost::math::students_t_distribution<double> student(count - 1);
  return boost::math::quantile(boost::math::complement(student, kTail)) * deviation /
         std::sqrt(count);
}

}  // namespace

SeedStatistics statistics_of(const std::vector<double>& values) {
  SeedStatistics result;
  for (const double value : values) {
    if (std::isfinite(value))
      result.values.push_back(value);
    else
      ++result.num_not_finite;
  }
  if (result.values.empty()) {
    result.mean = result.lowest = result.highest = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  result.mean = mean_of(result.values);
  result.lowest = *std::min_element(result.values.begin(), result.values.end());
  result.highest = *std::max_element(result.values.begin(), result.values.end());
  if (result.values.size() > 1) result.half_width = half_width_of(result.values, result.mean);
  return result;
}

}  // namespace titan::commands
