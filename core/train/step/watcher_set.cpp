#include "core/train/step/watcher_set.h"

#include <algorithm>
#include <utility>

#include <titan/watcher_state.h>

#include "core/config/selection/component_error.h"

namespace titan::core {

void WatcherSet::add(const Selection& chosen, std::unique_ptr<Watcher> watcher) {
  entries_.push_back({std::make_unique<Selection>(chosen), std::move(watcher)});
}

void WatcherSet::match(ModelPart& whole) {
  for (const Entry& entry : entries_)
    on_behalf_of(*entry.chosen, [&] { entry.watcher->match(whole); });
}

void WatcherSet::attach(ModelPart& part) {
  for (const Entry& entry : entries_)
    on_behalf_of(*entry.chosen, [&] { entry.watcher->attach(part); });
}

void WatcherSet::join(StepParts& parts) {
  const auto take = [&](const Entry& entry, std::vector<StepMember*> from,
                        std::vector<StepMember*>& to) {
    for (StepMember* member : from) {
      parts.require_commits(*entry.chosen, member->undoes_steps());
      to.push_back(member);
    }
  };
  for (const Entry& entry : entries_)
    on_behalf_of(*entry.chosen, [&] {
      parts.add(*entry.watcher, *entry.chosen);
      take(entry, entry.watcher->members(), members_);
      take(entry, entry.watcher->late_members(), late_members_);
    });
}

bool WatcherSet::look_into_layers() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.watcher->looks_into_layers(); });
}

bool WatcherSet::read_numbers() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.watcher->reads_numbers(); });
}

Value WatcherSet::states() const {
  Value states = Value::map();
  for (const Entry& entry : entries_)
    if (const auto* stateful = dynamic_cast<const WatcherState*>(entry.watcher.get()))
      states[entry.chosen->name] = stateful->state();
  return states;
}

void WatcherSet::restore(const Value& states) {
  for (const Entry& entry : entries_)
    if (auto* stateful = dynamic_cast<WatcherState*>(entry.watcher.get()))
      if (const Value* state = states.find(entry.chosen->name))
        on_behalf_of(*entry.chosen, [&] { stateful->restore(*state); });
}

void WatcherSet::start(const WatcherStart& start) {
  last_done_ = last_begun_ = start.resumed_step;
  for (const Entry& entry : entries_) entry.watcher->start(start);
}

void WatcherSet::step(int64_t step, const std::function<void()>& body) {
  last_begun_ = step;
  try {
    for (const Entry& entry : entries_) entry.watcher->before_step(step);
    body();
    last_done_ = step;
    for (const Entry& entry : entries_) entry.watcher->after_step(step);
  } catch (...) {
    for (const Entry& entry : entries_) entry.watcher->failed(last_done_);
    throw;
  }
}

void WatcherSet::report(int64_t step) {
  for (const Entry& entry : entries_) entry.watcher->report(step);
}

bool WatcherSet::validate_after(int64_t step) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [=](const Entry& entry) { return entry.watcher->validates(step); });
}

void WatcherSet::validate(int64_t step) {
  for (const Entry& entry : entries_)
    if (entry.watcher->validates(step)) entry.watcher->validate(step);
}

void WatcherSet::finish() noexcept {
  for (const Entry& entry : entries_) entry.watcher->finish(last_begun_);
}

}  // namespace titan::core
