#include "page_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <titan/runs/goodput.h>
#include <titan/shown_text.h>

#include "rounded.h"
#include "timeline_data.h"

namespace titan::commands {
namespace {

constexpr size_t kMostText = 2000;

std::string shown(const std::string& text) {
  return printable(text, kMostText);
}

Value to_value(const GoodputSeconds& seconds) {
  Value lost = Value::list();
  for (const double cause : seconds.lost) lost.as_list().push_back(rounded(cause));
  return Value::map({{"productive", rounded(seconds.productive)},
                     {"total", rounded(seconds.total())},
                     {"lost", std::move(lost)}});
}

const char* to_string(RunSession::End end) {
  constexpr const char* kNames[] = {"no end is recorded: killed, or still running", "finished",
                                    "stopped", "failed"};
  return kNames[static_cast<size_t>(end)];
}

const char* outcome_of(const GoodputMeter& meter, const RunSession& session) {
  const bool is_last = &session == &meter.sessions().back();
  return session.outcome == RunSession::End::none && !is_last ? "killed"
                                                              : to_string(session.outcome);
}

/// The environment that a session's start recorded, in the order of writing.
Value environment_of(const Value& start) {
  Value environment = Value::map();
  for (const auto& [name, value] : start.as_map()) {
    if (name == "event" || name == "time" || name == "config" || name == "resumed_step") continue;
    environment.as_map().emplace_back(
        shown(name), shown(value.is_string() ? value.as_string() : to_json(value)));
  }
  return environment;
}

Value sessions_of(const RunFolder& run, const GoodputMeter& meter) {
  Value sessions = Value::list();
  auto start = run.history.events.begin();
  for (const RunSession& session : meter.sessions()) {
    while (start->kind != RunEvent::Kind::start) ++start;
    sessions.as_list().push_back(
        Value::map({{"begin", point_in_time(session.begin)},
                    {"first_step", point_in_time(session.first_step_begin)},
                    {"end", point_in_time(session.end)},
                    {"resumed", session.resumed_step},
                    {"last", session.last_step},
                    {"outcome", outcome_of(meter, session)},
                    {"error", shown(session.error)},
                    {"seconds", to_value(session.seconds)},
                    {"environment", environment_of(start->details)}}));
    ++start;
  }
  return sessions;
}

/// The sum of neighbouring steps events of a session.
struct Bar {
  size_t session = 0;
  int64_t from = 0, to = 0, num_steps = 0;
  std::map<std::string, double> phases;
};

/// At most about `most` bars.
std::vector<Bar> bars_of(const std::vector<RunEvent>& events, size_t most) {
  const auto num_events =
      static_cast<size_t>(std::count_if(events.begin(), events.end(), [](const RunEvent& event) {
        return event.kind == RunEvent::Kind::steps;
      }));
  const size_t each = (num_events + most - 1) / std::max<size_t>(most, 1);
  std::vector<Bar> bars;
  size_t session = 0, taken = each;
  for (const RunEvent& event : events) {
    if (event.kind == RunEvent::Kind::start) ++session, taken = each;
    if (event.kind != RunEvent::Kind::steps) continue;
    if (taken >= each) {
      bars.push_back({.session = session, .from = event.from, .phases = {}});
      taken = 0;
    }
    ++taken;
    bars.back().to = event.to;
    bars.back().num_steps += event.to - event.from + 1;
    for (const auto& [phase, seconds] : event.phases) bars.back().phases[phase] += seconds;
  }
  return bars;
}

/// {"phases": ["data", ...], "bars": [[session, from, to, seconds per step of each phase...]]}
Value breakdown_of(const RunFolder& run, size_t most) {
  const std::vector<Bar> bars = bars_of(run.history.events, most);
  std::vector<std::string> phases;  // in the order of the run
  for (const RunEvent& event : run.history.events)
    for (const auto& [phase, seconds] : event.phases)
      if (std::find(phases.begin(), phases.end(), phase) == phases.end()) phases.push_back(phase);
  Value names = Value::list(), rows = Value::list();
  for (const std::string& phase : phases) names.as_list().emplace_back(shown(phase));
  for (const Bar& bar : bars) {
    Value row = Value::list({static_cast<int64_t>(bar.session), bar.from, bar.to});
    for (const std::string& phase : phases) {
      const auto found = bar.phases.find(phase);
      const double seconds = found == bar.phases.end() ? 0 : found->second;
      row.as_list().push_back(rounded(seconds / static_cast<double>(bar.num_steps)));
    }
    rows.as_list().push_back(std::move(row));
  }
  return Value::map({{"phases", std::move(names)}, {"bars", std::move(rows)}});
}

Value checkpoints_of(const RunFolder& run) {
  Value list = Value::list();
  for (const SavedStep& saved : run.checkpoints)
    list.as_list().push_back(Value::map({{"step", saved.step},
                                         {"time", point_in_time(saved.time)},
                                         {"bytes", saved.bytes},
                                         {"files", saved.num_files},
                                         {"contents", shown(saved.contents)},
                                         {"complete", saved.is_complete}}));
  return list;
}

/// The first `most` ones.
Value undone_of(const RunFolder& run, size_t most) {
  Value list = Value::list();
  for (const RunEvent& event : run.history.events)
    if (event.kind == RunEvent::Kind::undone && list.as_list().size() < most)
      list.as_list().push_back(Value::map({{"step", event.step},
                                           {"attempt", event.attempt},
                                           {"time", point_in_time(event.time)},
                                           {"skipped", event.is_skipped},
                                           {"reason", shown(event.reason)}}));
  return list;
}

Value ranks_of(const RunFolder& run) {
  Value list = Value::list();
  for (const RankStatus& status : run.statuses.ranks)
    list.as_list().push_back(Value::map({{"rank", status.rank},
                                         {"host", shown(status.host)},
                                         {"state", shown(status.state)},
                                         {"step", status.step},
                                         {"memory", rounded(status.memory_bytes)},
                                         {"total", rounded(status.memory_total)}}));
  return list;
}

Value failures_of(const RunFolder& run) {
  Value list = Value::list();
  for (const FailureRecord& failure : run.failures) {
    const std::string error = failure.error.empty() ? failure.seen : failure.error;
    Value row = Value::map({{"time", point_in_time(failure.time)},
                            {"rank", failure.rank},
                            {"ranks", failure.world_size},
                            {"step", failure.step ? Value(*failure.step) : Value()},
                            {"kind", kind_of(failure)},
                            {"how", shown(failure.how)},
                            {"error", shown(error)},
                            {"response", shown(failure.response)},
                            {"log", shown(failure.log)}});
    list.as_list().push_back(std::move(row));
  }
  return list;
}

Value problems_of(const RunFolder& run) {
  Value list = Value::list();
  for (const std::string& problem : run.problems) list.as_list().emplace_back(shown(problem));
  return list;
}

Value config_of(const RunFolder& run) {
  Value config = Value::map();
  for (const auto& [key, value] : run.config)
    config.as_map().emplace_back(shown(key), shown(value));
  return config;
}

/// The last component of each path; equal names are extended by the component before.
std::vector<std::string> names_of(const std::vector<RunFolder>& runs) {
  std::map<std::string, int> count;
  for (const RunFolder& run : runs) ++count[run.name];
  std::vector<std::string> names;
  for (const RunFolder& run : runs)
    names.push_back(shown(count[run.name] > 1 ? run.path.string() : run.name));
  return names;
}

}  // namespace

Value to_page_data(const std::vector<RunFolder>& runs, const ReportLimits& limits) {
  std::vector<const Metrics*> metrics;
  for (const RunFolder& run : runs) metrics.push_back(&run.metrics);
  Value curves = curve_data(metrics, limits.curve_numbers);
  const std::vector<std::string> names = names_of(runs);
  const int64_t spans = limits.timeline_spans / static_cast<int64_t>(runs.size());
  Value list = Value::list();
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunFolder& run = runs[i];
    const GoodputMeter meter = measure_goodput(run.history.events);
    list.as_list().push_back(Value::map({{"name", names[i]},
                                         {"metrics", std::move(curves.as_list()[i])},
                                         {"config", config_of(run)},
                                         {"sessions", sessions_of(run, meter)},
                                         {"goodput", to_value(meter.seconds())},
                                         {"breakdown", breakdown_of(run, limits.breakdown_bars)},
                                         {"checkpoints", checkpoints_of(run)},
                                         {"undone", undone_of(run, limits.undone_steps)},
                                         {"ranks", ranks_of(run)},
                                         {"failures", failures_of(run)},
                                         {"timeline", timeline_data(run.timelines, spans)},
                                         {"problems", problems_of(run)}}));
  }
  Value causes = Value::list();
  for (size_t i = 0; i < kNumLostTimes; ++i)
    causes.as_list().emplace_back(to_string(static_cast<LostTime>(i)));
  return Value::map({{"causes", std::move(causes)}, {"runs", std::move(list)}});
}

}  // namespace titan::commands
