#include <titan/runs/goodput.h>

#include <algorithm>
#include <numeric>

namespace titan {

const char* to_string(LostTime cause) {
  constexpr const char* kNames[kNumLostTimes] = {"start-up",          "restart",
                                                 "steps thrown away", "held by checkpoints",
                                                 "validation",        "waiting for replica groups",
                                                 "hang before error", "other"};
  return kNames[static_cast<size_t>(cause)];
}

double GoodputSeconds::total() const {
  return std::accumulate(lost.begin(), lost.end(), productive);
}

double GoodputSeconds::share() const {
  const double all = total();
  return all > 0 ? productive / all : 0;
}

void GoodputMeter::add(const RunEvent& event) {
  if (event.kind == RunEvent::Kind::start) return start(event);
  if (sessions_.empty()) return;
  RunSession& session = sessions_.back();
  session.end = std::max(session.end, event.time);
  if (event.kind == RunEvent::Kind::undone) return;  // its step is not done yet
  session.last_step = std::max(session.last_step, event.step);
  switch (event.kind) {
    case RunEvent::Kind::steps:
      return take_steps(event);
    case RunEvent::Kind::end:
      return end(event);
    case RunEvent::Kind::first_step:
      first_step_done_ = event.time;
      break;
    case RunEvent::Kind::checkpoint:
      unsettled_.checkpoint += event.seconds;
      break;
    case RunEvent::Kind::validation:
      unsettled_.validation += event.seconds;
      break;
    case RunEvent::Kind::start:
    case RunEvent::Kind::undone:
      break;
  }
  unsettled_.time = event.time;
  unsettled_.step = std::max(unsettled_.step, event.step);
}

void GoodputMeter::start(const RunEvent& event) {
  settle();
  throw_away_after(event.step);
  if (sessions_.empty()) counted_until_ = event.time;
  RunSession& session = sessions_.emplace_back();
  session.begin = session.end = event.time;
  session.resumed_step = session.last_step = event.step;
  first_step_done_ = seconds_per_step_ = 0;
}

/// Seconds up to `time` that were not counted yet; marks them as counted.
double GoodputMeter::pass_until(double time) {
  const double passed = std::max(0.0, time - counted_until_);
  counted_until_ = time;
  return passed;
}

/// The category of the time before the first step of this session.
LostTime GoodputMeter::setting_up() const {
  return sessions_.size() == 1 ? LostTime::startup : LostTime::restart;
}

/// The last step that is done and counted.
int64_t GoodputMeter::counted_step() const {
  const int64_t resumed = sessions_.back().resumed_step;
  return kept_.empty() ? resumed : std::max(kept_.back().to, resumed);
}

/// The first step of the session began at `time`.
void GoodputMeter::begin_steps(double time) {
  RunSession& session = sessions_.back();
  session.first_step_begin = std::max(time, session.begin);
  session.seconds.of(setting_up()) += pass_until(session.first_step_begin);
}

void GoodputMeter::take_steps(const RunEvent& event) {
  const double total = event.phase_total();
  RunSession& session = sessions_.back();
  if (session.first_step_begin == 0) begin_steps(event.time - total);
  const double checkpoint = event.phase("checkpoint"), validation = event.phase("validation"),
               replicas = event.phase("replicas");
  session.seconds.of(LostTime::checkpoint) += checkpoint;
  session.seconds.of(LostTime::validation) += validation;
  session.seconds.of(LostTime::replicas) += replicas;
  session.seconds.of(LostTime::other) += std::max(0.0, pass_until(event.time) - total);
  const double productive = total - checkpoint - validation - replicas;
  keep(event.from, event.to, productive);
  seconds_per_step_ = productive / static_cast<double>(event.to - event.from + 1);
  unsettled_ = {};
}

void GoodputMeter::settle() {
  if (sessions_.empty() || unsettled_.time == 0) return;
  RunSession& session = sessions_.back();
  if (session.first_step_begin == 0 && first_step_done_ > 0) begin_steps(first_step_done_);
  if (session.first_step_begin == 0) return;
  double passed = pass_until(unsettled_.time);
  const auto take = [&](double seconds) {
    const double taken = std::min(passed, seconds);
    passed -= taken;
    return taken;
  };
  session.seconds.of(LostTime::checkpoint) += take(unsettled_.checkpoint);
  session.seconds.of(LostTime::validation) += take(unsettled_.validation);
  const int64_t done = counted_step();
  if (unsettled_.step > done)
    keep(done + 1, unsettled_.step, passed);
  else
    session.seconds.of(LostTime::other) += passed;
  unsettled_ = {};
}

void GoodputMeter::end(const RunEvent& event) {
  settle();
  RunSession& session = sessions_.back();
  session.outcome = static_cast<RunSession::End>(static_cast<int>(event.outcome) + 1);
  session.error = event.error;
  double passed = pass_until(event.time);
  if (session.first_step_begin == 0) {
    session.seconds.of(setting_up()) += passed;
    return;
  }
  if (event.outcome == RunEvent::Outcome::failed) {
    session.seconds.of(LostTime::hang) += passed;
    return;
  }
  const int64_t done = counted_step();
  if (event.step > done) {
    const double steps =
        std::min(passed, seconds_per_step_ * static_cast<double>(event.step - done));
    keep(done + 1, event.step, steps);
    passed -= steps;
  }
  session.seconds.of(LostTime::other) += passed;
}

void GoodputMeter::keep(int64_t from, int64_t to, double seconds) {
  kept_.push_back({from, to, seconds, sessions_.size() - 1});
  sessions_.back().seconds.productive += seconds;
}

void GoodputMeter::throw_away_after(int64_t step) {
  while (!kept_.empty() && kept_.back().to > step) {
    Interval& last = kept_.back();
    const int64_t lost_steps = std::min(last.to - step, last.to - last.from + 1);
    const double lost = last.seconds * static_cast<double>(lost_steps) /
                        static_cast<double>(last.to - last.from + 1);
    GoodputSeconds& seconds = sessions_[last.session].seconds;
    seconds.productive -= lost;
    seconds.of(LostTime::repeated) += lost;
    if (last.from > step) {
      kept_.pop_back();
    } else {
      last.to = step;
      last.seconds -= lost;
    }
  }
}

GoodputSeconds GoodputMeter::seconds() const {
  GoodputSeconds sum;
  for (const RunSession& session : sessions_) {
    sum.productive += session.seconds.productive;
    for (size_t i = 0; i < kNumLostTimes; ++i) sum.lost[i] += session.seconds.lost[i];
  }
  return sum;
}

GoodputMeter measure_goodput(const std::vector<RunEvent>& events) {
  GoodputMeter meter;
  for (const RunEvent& event : events) meter.add(event);
  meter.settle();
  return meter;
}

}  // namespace titan
