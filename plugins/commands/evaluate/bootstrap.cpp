#include "bootstrap.h"

#include <algorithm>
#include <cmath>

namespace titan::evaluation {

PythonRandom::PythonRandom(uint32_t seed) {
  state_[0] = 19650218U;
  for (uint32_t i = 1; i < state_.size(); ++i)
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  size_t i = 1;
  const auto advance = [&] {
    if (++i < state_.size()) return;
    state_[0] = state_.back();
    i = 1;
  };
  for (size_t round = 0; round < state_.size(); ++round, advance())
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525U)) + seed;
  for (size_t round = 1; round < state_.size(); ++round, advance())
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941U)) -
                static_cast<uint32_t>(i);
  state_[0] = 0x80000000U;
}

uint32_t PythonRandom::next_word() {
  constexpr size_t kSize = 624, kMiddle = 397;
  if (place_ == kSize) {
    for (size_t i = 0; i < kSize; ++i) {
      const uint32_t mixed = (state_[i] & 0x80000000U) | (state_[(i + 1) % kSize] & 0x7fffffffU);
      state_[i] =
          state_[(i + kMiddle) % kSize] ^ (mixed >> 1) ^ ((mixed & 1U) != 0 ? 0x9908b0dfU : 0U);
    }
    place_ = 0;
  }
  uint32_t word = state_[place_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680U;
  word ^= (word << 15) & 0xefc60000U;
  return word ^ (word >> 18);
}

double PythonRandom::next() {
  const uint32_t high = next_word() >> 5, low = next_word() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

double bootstrap_error(const std::vector<double>& values, int64_t iterations,
                       const std::function<double(double mean)>& of_mean) {
  const int64_t of_seed = std::min<int64_t>(1000, iterations);
  const auto count = static_cast<double>(values.size());
  std::vector<double> found;
  for (int64_t seed = 0; seed < iterations / of_seed; ++seed) {
    PythonRandom random(static_cast<uint32_t>(seed));
    for (int64_t draw = 0; draw < of_seed; ++draw) {
      double sum = 0;
      for (size_t i = 0; i < values.size(); ++i)
        sum += values[static_cast<size_t>(random.next() * count)];
      found.push_back(of_mean(sum / count));
    }
  }
  double mean = 0, squares = 0;
  for (const double value : found) mean += value / static_cast<double>(found.size());
  for (const double value : found) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(found.size() - 1));
}

}  // namespace titan::evaluation
