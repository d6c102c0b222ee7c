// Calls the watchers of a run. Used by assembly and by the trainer, which know no watcher by name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <titan/value.h>
#include <titan/watcher.h>

#include "core/config/schema/job_config.h"
#include "core/train/step/step_parts.h"

namespace titan::core {

/// Calls are those of titan::Watcher, in the order in which watchers were added. Thread: trainer
/// thread.
class WatcherSet {
 public:
  void add(const Selection& chosen, std::unique_ptr<Watcher> watcher);
  /// Removes all watchers; the calls below then do nothing.
  void clear() { entries_.clear(); }

  /// ComponentError: a watcher asks for a module that does not exist.
  void match(ModelPart& whole);
  /// As match().
  void attach(ModelPart& part);
  /// [after attach] Adds followers and wrappers to `parts` and collects the members.
  /// ComponentError: a member undoes steps although the optimizer works inside the backward.
  void join(StepParts& parts);

  const std::vector<StepMember*>& members() const { return members_; }
  const std::vector<StepMember*>& late_members() const { return late_members_; }
  bool look_into_layers() const;
  bool read_numbers() const;

  /// The states of the watchers that have one (WatcherState), by name. Equal on all ranks.
  Value states() const;
  /// [before start] Restores those that are in `states`. data Error: one does not fit.
  void restore(const Value& states);
  void start(const WatcherStart& start);
  /// Runs `body`, the whole step number `step`, between the calls before and after it.
  void step(int64_t step, const std::function<void()>& body);
  void report(int64_t step);
  bool validate_after(int64_t step) const;
  /// Calls the watchers that validate after this step.
  void validate(int64_t step);
  void finish() noexcept;

 private:
  struct Entry {
    std::unique_ptr<Selection> chosen;  // StepParts refers to it
    std::unique_ptr<Watcher> watcher;
  };

  std::vector<Entry> entries_;
  std::vector<StepMember*> members_, late_members_;
  int64_t last_done_ = 0, last_begun_ = 0;
};

}  // namespace titan::core
