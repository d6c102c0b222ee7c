#include <titan/step_phase.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include <ATen/record_function.h>
#include <titan/dist/recorder.h>

#include "monotonic_clock.h"

namespace titan {
namespace {

bool counts_whole(StepPhase phase) {
  return phase == StepPhase::checkpoint || phase == StepPhase::validation ||
         phase == StepPhase::replicas;
}

}  // namespace

std::string_view name_of(StepPhase phase) {
  constexpr std::string_view kNames[] = {"other",      "data",          "forward",
                                         "backward",   "communication", "optimizer",
                                         "checkpoint", "validation",    "replicas"};
  static_assert(std::size(kNames) == kNumPhases);
  return kNames[static_cast<size_t>(phase)];
}

StepClock::StepClock() : since_(monotonic_now()) {}

StepPhase StepClock::counted() const {
  const auto whole = std::find_if(scopes_.begin(), scopes_.end(), counts_whole);
  if (whole != scopes_.end()) return *whole;
  if (num_waits_ > 0) return StepPhase::communication;
  return scopes_.empty() ? StepPhase::other : scopes_.back();
}

void StepClock::switch_from(StepPhase before) {
  if (counted() == before) return;
  const double now = monotonic_now();
  seconds_[static_cast<size_t>(before)] += now - since_;
  since_ = now;
}

void StepClock::enter(StepPhase phase) {
  const std::lock_guard lock(mutex_);
  const StepPhase before = counted();
  scopes_.push_back(phase);
  switch_from(before);
}

void StepClock::leave() {
  const std::lock_guard lock(mutex_);
  const StepPhase before = counted();
  scopes_.pop_back();
  switch_from(before);
}

void StepClock::begin_wait() {
  const std::lock_guard lock(mutex_);
  const StepPhase before = counted();
  ++num_waits_;
  switch_from(before);
}

void StepClock::end_wait() {
  const std::lock_guard lock(mutex_);
  const StepPhase before = counted();
  --num_waits_;
  switch_from(before);
}

StepClock::Seconds StepClock::seconds() const {
  const std::lock_guard lock(mutex_);
  Seconds seconds = seconds_;
  seconds[static_cast<size_t>(counted())] += monotonic_now() - since_;
  return seconds;
}

double StepClock::waited() const {
  return seconds()[static_cast<size_t>(StepPhase::communication)];
}

StepPhase StepClock::current() const {
  const std::lock_guard lock(mutex_);
  return counted();
}

double StepClock::current_since() const {
  const std::lock_guard lock(mutex_);
  return since_;
}

void StepClock::keep_spans(bool keeps) {
  const std::lock_guard lock(mutex_);
  keeps_spans_ = keeps;
}

bool StepClock::keeps_spans() const {
  const std::lock_guard lock(mutex_);
  return keeps_spans_;
}

void StepClock::keep(PhaseSpan span) {
  const std::lock_guard lock(mutex_);
  if (keeps_spans_ && spans_.size() < kMostSpans) spans_.push_back(std::move(span));
}

std::vector<PhaseSpan> StepClock::take_spans() {
  const std::lock_guard lock(mutex_);
  return std::exchange(spans_, {});
}

struct PhaseScope::Profiled {
  explicit Profiled(at::StepCallbacks&& callbacks) : function(std::move(callbacks)) {}
  at::RecordFunction function;
};

PhaseScope::PhaseScope(dist::Recorder& recorder, StepPhase phase, std::string label)
    : recorder_(recorder),
      phase_(phase),
      label_(std::move(label)),
      num_exceptions_(std::uncaught_exceptions()) {
  if (auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE)) {
    profiled_ = std::make_unique<Profiled>(std::move(*callbacks));
    profiled_->function.before(label_.empty() ? std::string(name_of(phase)) : label_);
  }
  recorder_.clock().enter(phase);
  if (label_.empty()) return;
  activity_before_ = recorder_.activity();
  recorder_.set_activity(label_);
  begin_ = monotonic_now();
  waited_before_ = recorder_.clock().waited();
}

PhaseScope::~PhaseScope() {
  StepClock& clock = recorder_.clock();
  if (!label_.empty() && std::uncaught_exceptions() == num_exceptions_) {
    if (clock.keeps_spans())
      clock.keep({.phase = phase_,
                  .name = std::move(label_),
                  .begin = begin_,
                  .end = monotonic_now(),
                  .waited = clock.waited() - waited_before_});
    recorder_.set_activity(std::move(activity_before_));
  }
  clock.leave();
}

WaitScope::WaitScope(dist::Recorder& recorder) : clock_(recorder.clock()) {
  clock_.begin_wait();
}

WaitScope::~WaitScope() {
  clock_.end_wait();
}

}  // namespace titan
