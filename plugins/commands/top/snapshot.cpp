#include "snapshot.h"

#include <algorithm>
#include <cmath>

namespace titan::commands {
namespace {

bool works(const RankRow& row) {
  return row.mark != RankMark::silent && row.mark != RankMark::ended;
}

bool has_waited_long(const RankRow& row) {
  return row.status.waiting_seconds > kSilentSeconds;
}

void mark_silent(std::vector<RankRow>& rows) {
  for (RankRow& row : rows) {
    if (row.status.state == "ended")
      row.mark = RankMark::ended;
    else if (!(row.age <= kSilentSeconds))
      row.mark = RankMark::silent;
  }
}

/// Ranks that work while at least half of the others wait.
void mark_awaited(std::vector<RankRow>& rows) {
  const auto num_waiting = std::count_if(rows.begin(), rows.end(), has_waited_long);
  for (RankRow& row : rows)
    if (works(row) && !has_waited_long(row) && 2 * num_waiting >= std::ssize(rows) - 1 &&
        num_waiting > 0)
      row.mark = RankMark::awaited;
}

void mark_behind(std::vector<RankRow>& rows, int64_t furthest) {
  for (RankRow& row : rows)
    if (row.mark == RankMark::none && row.status.step >= 0 && row.status.step + 2 <= furthest)
      row.mark = RankMark::behind;
}

/// The rank with the smallest share of waiting, when the others spend much of a step waiting.
void mark_slowest(std::vector<RankRow>& rows) {
  constexpr double kMuch = 0.1;
  std::vector<double> shares;
  for (const RankRow& row : rows) shares.push_back(row.status.communication_share());
  if (shares.size() < 2 ||
      std::any_of(shares.begin(), shares.end(), [](double share) { return std::isnan(share); }))
    return;
  const auto least = std::min_element(shares.begin(), shares.end());
  RankRow& row = rows[static_cast<size_t>(least - shares.begin())];
  const double own = *least;
  const auto middle = shares.begin() + std::ssize(shares) / 2;
  std::nth_element(shares.begin(), middle, shares.end());
  if (*middle >= kMuch && own <= *middle / 2 && row.mark == RankMark::none)
    row.mark = RankMark::slowest;
}

double order_value(const RankRow& row, RankOrder order) {
  const auto known = [](double value) { return std::isnan(value) ? -1 : value; };
  switch (order) {
    case RankOrder::worst:
      return -static_cast<double>(row.mark);
    case RankOrder::rank:
      return 0;
    case RankOrder::step:  // the lowest step comes first
      return -static_cast<double>(row.status.step);
    case RankOrder::waiting:
      return known(row.status.waiting_seconds);
    case RankOrder::memory:
      return known(row.status.memory_bytes);
  }
  return 0;
}

}  // namespace

int64_t RunSnapshot::count(RankMark mark) const {
  return std::count_if(rows.begin(), rows.end(),
                       [&](const RankRow& row) { return row.mark == mark; });
}

double RunSnapshot::seconds_left() const {
  if (step < 0 || steps < step) return RankStatus::kUnknown;
  return static_cast<double>(steps - step) * step_seconds;
}

RunSnapshot to_snapshot(RankStatuses statuses, double now) {
  RunSnapshot snapshot;
  snapshot.num_unreadable = static_cast<int64_t>(statuses.unreadable.size());
  int64_t world_size = 0;
  const auto take = [](double& known, double reported) {
    if (!std::isnan(reported)) known = reported;
  };
  for (RankStatus& status : statuses.ranks) {
    world_size = std::max(world_size, status.world_size);
    snapshot.step = std::max(snapshot.step, status.step);
    snapshot.steps = std::max(snapshot.steps, status.steps);
    take(snapshot.loss, status.loss);
    take(snapshot.tokens_per_second, status.tokens_per_second);
    take(snapshot.step_seconds, status.step_seconds);
    const double age = std::max(0.0, now - status.time);
    snapshot.rows.push_back({std::move(status), RankMark::none, age});
    if (std::isnan(snapshot.rows.back().status.time))
      snapshot.rows.back().age = RankStatus::kUnknown;
  }
  snapshot.num_missing =
      std::max<int64_t>(0, world_size - std::ssize(snapshot.rows) - snapshot.num_unreadable);
  mark_silent(snapshot.rows);
  mark_awaited(snapshot.rows);
  mark_behind(snapshot.rows, snapshot.step);
  mark_slowest(snapshot.rows);
  return snapshot;
}

void sort_rows(std::vector<RankRow>& rows, RankOrder order) {
  std::stable_sort(rows.begin(), rows.end(), [&](const RankRow& a, const RankRow& b) {
    return order_value(a, order) > order_value(b, order);
  });
}

}  // namespace titan::commands
