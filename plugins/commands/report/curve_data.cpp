// See page_data.h.
#include <algorithm>
#include <cmath>
#include <map>

#include <titan/shown_text.h>

#include "page_data.h"
#include "rounded.h"

namespace titan::commands {
namespace {

constexpr int64_t kMostBuckets = 2000;  // finer than a screen
constexpr int64_t kLeastBuckets = 8;
constexpr size_t kMostOdd = 50;

/// Weight of a curve: the curves that the page shows first get finer buckets.
int64_t weight_of(const std::string& tag) {
  return tag.find("loss") != tag.npos || tag == "grad_norm" ? 4 : 1;
}

int64_t numbers_of(const std::string& tag, const Series& series, int64_t most) {
  const auto count = static_cast<int64_t>(series.values.size());
  const int64_t own = std::min(kMostBuckets, most * weight_of(tag));
  return count <= own ? count : 3 * own;
}

/// The largest number of buckets per curve for which all curves stay within `most_numbers`.
int64_t bucket_limit(const std::vector<const Metrics*>& runs, int64_t most_numbers) {
  int64_t low = kLeastBuckets, high = kMostBuckets;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    int64_t sum = 0;
    for (const Metrics* run : runs)
      for (const auto& [tag, series] : run->series) sum += numbers_of(tag, series, middle);
    if (sum <= most_numbers)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// Unique lists of steps with their indices.
class StepLists {
 public:
  int64_t index_of(const std::vector<int64_t>& steps) {
    const auto [found, is_new] = indices_.try_emplace(steps, static_cast<int64_t>(indices_.size()));
    if (is_new) {
      Value list = Value::list();
      for (const int64_t step : steps) list.as_list().emplace_back(step);
      lists_.as_list().push_back(std::move(list));
    }
    return found->second;
  }
  Value take() { return std::move(lists_); }

 private:
  std::map<std::vector<int64_t>, int64_t> indices_;
  Value lists_ = Value::list();
};

Value every_value(const Series& series, StepLists& steps) {
  Value values = Value::list();
  for (const double value : series.values) values.as_list().push_back(rounded(value));
  return Value::map({{"s", steps.index_of(series.steps)}, {"v", std::move(values)}});
}

Value in_buckets(const Series& series, size_t most, StepLists& steps) {
  std::vector<int64_t> first, last;
  Value mean = Value::list(), lowest = Value::list(), highest = Value::list(), odd = Value::list();
  for (const Bucket& bucket : to_buckets(series, most)) {
    first.push_back(bucket.first_step);
    last.push_back(bucket.last_step);
    mean.as_list().push_back(rounded(bucket.mean));
    lowest.as_list().push_back(rounded(bucket.lowest));
    highest.as_list().push_back(rounded(bucket.highest));
  }
  int64_t num_odd = 0;
  for (size_t i = 0; i < series.values.size(); ++i)
    if (!std::isfinite(series.values[i]) && ++num_odd <= static_cast<int64_t>(kMostOdd))
      odd.as_list().push_back(Value::list({series.steps[i], rounded(series.values[i])}));
  Value curve = Value::map({{"s", steps.index_of(first)},
                            {"e", steps.index_of(last)},
                            {"v", std::move(mean)},
                            {"lo", std::move(lowest)},
                            {"hi", std::move(highest)},
                            {"n", static_cast<int64_t>(series.values.size())}});
  if (num_odd > 0) {
    curve["odd"] = std::move(odd);
    curve["num_odd"] = num_odd;
  }
  return curve;
}

}  // namespace

Value curve_data(const std::vector<const Metrics*>& runs, int64_t most_numbers) {
  const int64_t limit = bucket_limit(runs, most_numbers);
  Value data = Value::list();
  for (const Metrics* run : runs) {
    StepLists steps;
    Value curves = Value::map();
    for (const auto& [tag, series] : run->series) {
      const int64_t most = std::min(kMostBuckets, limit * weight_of(tag));
      curves.as_map().emplace_back(printable(tag),
                                   static_cast<int64_t>(series.values.size()) <= most
                                       ? every_value(series, steps)
                                       : in_buckets(series, static_cast<size_t>(most), steps));
    }
    data.as_list().push_back(Value::map({{"steps", steps.take()}, {"curves", std::move(curves)}}));
  }
  return data;
}

}  // namespace titan::commands
