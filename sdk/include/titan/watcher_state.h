// Optional interface of watchers whose state is saved with checkpoints. No torch.
#pragma once

#include <titan/export.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(watcher_state);

namespace titan {

/// Optional: a Watcher that derives from this has a state that belongs to the step, such as a
/// window of past losses. A resumed run continues with it bitwise, under any layout. Thread:
/// trainer thread.
class TITAN_API WatcherState {
 public:
  virtual ~WatcherState();
  /// [after the commit or skip of a step] Equal on all ranks, because rank 0 saves it for all.
  /// Doubles keep their bits if they are finite.
  virtual Value state() const = 0;
  /// [once, in a resumed run, before Watcher::start] The state that was saved; not called if the
  /// checkpoint has none of this watcher. Throws a data Error if it does not fit.
  virtual void restore(const Value& state) = 0;
};

}  // namespace titan
