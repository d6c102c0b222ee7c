#include "faults.h"

#include <numeric>
#include <utility>

namespace titan::replay {

Odd odd_of(bool first_is_second, bool first_is_third, bool second_is_third) {
  if (first_is_second) return first_is_third ? Odd::none : Odd::third;
  if (first_is_third) return Odd::second;
  return second_is_third ? Odd::first : Odd::all;
}

void FaultCounts::set_places(std::vector<std::string> places) {
  places_ = std::move(places);
  kept_.assign(places_.size(), 0);
  pending_.assign(places_.size(), 0);
  if (restored_.is_null()) return;
  for (const Value& entry : restored_.at("ranks").as_list()) {
    const auto rank = static_cast<size_t>(entry.at("rank").as_integer());
    if (rank < places_.size() && places_[rank] == entry.at("place").as_string())
      kept_[rank] = entry.at("faults").as_integer();
  }
}

void FaultCounts::add(const std::vector<Finding>& findings) {
  for (size_t rank = 0; rank < findings.size(); ++rank)
    if (findings[rank].odd != Odd::none) ++pending_[rank];
}

void FaultCounts::keep() {
  for (size_t rank = 0; rank < kept_.size(); ++rank)
    kept_[rank] += std::exchange(pending_[rank], 0);
}

int64_t FaultCounts::total() const {
  return std::accumulate(kept_.begin(), kept_.end(), int64_t{0}) +
         std::accumulate(pending_.begin(), pending_.end(), int64_t{0});
}

Value FaultCounts::state() const {
  Value ranks = Value::list();
  for (size_t rank = 0; rank < kept_.size(); ++rank)
    if (kept_[rank] > 0)
      ranks.as_list().push_back(Value::map({{"rank", static_cast<int64_t>(rank)},
                                            {"place", places_[rank]},
                                            {"faults", kept_[rank]}}));
  return Value::map({{"ranks", std::move(ranks)}});
}

void FaultCounts::restore(const Value& state) {
  restored_ = state;
}

}  // namespace titan::replay
