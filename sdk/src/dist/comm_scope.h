// A collective in the trace of a torch profiler. Used where groups start and await them.
#pragma once

#include <memory>

#include <titan/dist/recorder.h>

namespace titan::dist {

/// While alive and while a profiler records, the start of a collective, or the wait for one, stands
/// in its trace as torch's own transports write it: "record_param_comms" with group, ranks, bytes
/// and, as its first input, the number that is equal on all ranks of the group (on both ends of a
/// message). Else it costs one look at an empty list of callbacks.
class CommScope {
 public:
  enum class Part { start, wait };

  CommScope(Part part, const Recorder& recorder, int64_t ticket);
  ~CommScope();
  CommScope(const CommScope&) = delete;

 private:
  struct Event;
  std::unique_ptr<Event> event_;  // null while nobody profiles
};

}  // namespace titan::dist
