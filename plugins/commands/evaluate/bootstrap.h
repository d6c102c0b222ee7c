// Bootstrap standard error of a statistic that is not a mean, by resampling the documents. Used by
// scores.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace titan::evaluation {

/// Python's random.Random(seed): MT19937 with init_by_array. Matsumoto and Nishimura, 1998.
class PythonRandom {
 public:
  explicit PythonRandom(uint32_t seed);
  /// In [0, 1), 53 bits: random().
  double next();

 private:
  uint32_t next_word();
  std::array<uint32_t, 624> state_;
  size_t place_ = 624;
};

/// Standard deviation of `of_mean` over the means of `iterations` samples with replacement. Draws
/// the same samples as lm-evaluation-harness: 1000 with each seed from 0 on.
double bootstrap_error(const std::vector<double>& values, int64_t iterations,
                       const std::function<double(double mean)>& of_mean);

}  // namespace titan::evaluation
