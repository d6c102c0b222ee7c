#include "core/train/logging/timeline_file.h"

#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/step_phase.h>

namespace titan::core {
namespace {

bool is_kept(int64_t number) {
  while (number >= 10 && number % 10 == 0) number /= 10;
  return number < 10;
}

Value as_value(const PlannedPipeline& planned) {
  const PipelinePlan& plan = *planned.plan;
  Value::List actions;
  for (const PipelineAction& action : plan.actions.at(static_cast<size_t>(planned.rank)))
    actions.push_back(to_string(action));
  return Value::map({{"schedule", planned.schedule},
                     {"rank", planned.rank},
                     {"num_ranks", plan.shape.num_ranks},
                     {"num_stages", plan.shape.num_stages},
                     {"num_microbatches", plan.shape.num_microbatches},
                     {"actions", std::move(actions)}});
}

/// The traffic between two readings of the recorder.
Value::List difference(const TimelineFile::TrafficByKind& from,
                       const TimelineFile::TrafficByKind& to) {
  Value::List rows;
  for (const auto& [kind, traffic] : to) {
    const auto before = from.find(kind);
    const dist::Traffic old = before == from.end() ? dist::Traffic{} : before->second;
    if (traffic.calls == old.calls) continue;
    rows.push_back(Value::map({{"group", kind.first},
                               {"operation", kind.second},
                               {"calls", traffic.calls - old.calls},
                               {"bytes", traffic.bytes - old.bytes}}));
  }
  return rows;
}

}  // namespace

TimelineFile::TimelineFile(const std::filesystem::path& path, bool goes_on,
                           dist::Recorder& recorder, const PlannedPipeline& planned)
    : recorder_(recorder) {
  try {
    std::filesystem::create_directories(path.parent_path());
    file_.emplace(path);
    if (!goes_on) file_->truncate(0);
  } catch (const std::exception& error) {
    file_.reset();
    log::warn(std::string("the timeline of this rank is not written: ") + error.what());
  }
  write(Value::map({{"plan", planned.plan ? as_value(planned) : Value()}}));
}

void TimelineFile::begin_step(int64_t step, bool is_logged) {
  step_ = is_logged && file_ && is_kept(++num_logged_) ? step : 0;
  begin_ = monotonic_seconds();
  if (step_ == 0) return;
  recorder_.clock().keep_spans(true);
  traffic_ = recorder_.traffic();
}

void TimelineFile::end_step() {
  if (step_ == 0) return;
  recorder_.clock().keep_spans(false);
  Value::List spans;
  for (const PhaseSpan& span : recorder_.clock().take_spans())
    spans.push_back(Value::map({{"phase", name_of(span.phase)},
                                {"name", span.name},
                                {"begin", span.begin - begin_},
                                {"end", span.end - begin_},
                                {"waited", span.waited}}));
  const double began = wall_seconds() - (monotonic_seconds() - begin_);
  write(Value::map({{"step", step_},
                    {"begin", began},
                    {"spans", std::move(spans)},
                    {"traffic", difference(traffic_, recorder_.traffic())}}));
}

void TimelineFile::write(const Value& line) {
  if (!file_) return;
  try {
    file_->append(to_json(line) + "\n");
    file_->flush();
  } catch (const Error& error) {
    file_.reset();
    log::warn("the timeline of this rank ends here, training continues: " + error.message());
  }
}

}  // namespace titan::core
