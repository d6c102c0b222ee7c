// Mean and 95 % confidence interval of a few numbers. Used by titan sweep for the seeds of a case.
#pragma once

#include <optional>
#include <vector>

namespace titan::commands {

struct SeedStatistics {
  std::vector<double> values;                ///< the finite ones, in order
  int num_not_finite = 0;                    ///< NaN or infinite: these runs diverged
  double mean = 0, lowest = 0, highest = 0;  ///< NaN without values
  /// Half the width of the interval mean ± t s / √n, with Student's t of n − 1 degrees of freedom.
  /// It assumes that the values are normally distributed. Absent for fewer than two values.
  std::optional<double> half_width;
};

SeedStatistics statistics_of(const std::vector<double>& values);

}  // namespace titan::commands
