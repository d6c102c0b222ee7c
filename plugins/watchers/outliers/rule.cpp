#include "rule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <titan/error.h>

namespace titan::outliers {

std::optional<Excess> Series::judge(double value) const {
  Excess excess{.largest = largest_, .num_values = static_cast<int64_t>(window_.size())};
  if (options_.times_largest > 0 && num_first_ >= options_.largest_of) {
    excess.kind = Excess::Kind::largest;
    excess.limit = options_.times_largest * largest_;
    if (std::abs(value) >= excess.limit) return excess;
  }
  if (options_.sigmas == 0 || excess.num_values < options_.minimum) return std::nullopt;
  const auto n = static_cast<double>(window_.size());
  excess.kind = Excess::Kind::sigmas;
  excess.mean = std::accumulate(window_.begin(), window_.end(), 0.0) / n;
  double squares = 0;
  for (const double x : window_) squares += (x - excess.mean) * (x - excess.mean);
  excess.sigma = std::sqrt(squares / (n - 1));
  excess.limit = excess.mean + options_.sigmas * excess.sigma;
  if (value > excess.limit) return excess;
  return std::nullopt;
}

void Series::add(double value) {
  TITAN_ASSERT(std::isfinite(value), "a committed step has the value ", value);
  window_.push_back(value);
  if (static_cast<int64_t>(window_.size()) > options_.window) window_.pop_front();
  if (num_first_ >= options_.largest_of) return;
  ++num_first_;
  largest_ = std::max(largest_, std::abs(value));
}

Value Series::state() const {
  Value::List values(window_.begin(), window_.end());
  return Value::map(
      {{"window", Value(std::move(values))}, {"largest", largest_}, {"num_first", num_first_}});
}

/// A shorter window than that of the checkpoint keeps the newest values.
void Series::restore(const Value& state) {
  window_.clear();
  for (const Value& value : state.at("window").as_list()) window_.push_back(value.as_number());
  while (static_cast<int64_t>(window_.size()) > options_.window) window_.pop_front();
  largest_ = state.at("largest").as_number();
  num_first_ = state.at("num_first").as_integer();
}

}  // namespace titan::outliers
