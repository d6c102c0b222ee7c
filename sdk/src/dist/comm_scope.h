// Records a collective in the trace of a torch profiler. Used where groups start and await
// collectives.
#pragma once

#include <memory>

#include <titan/dist/recorder.h>

namespace titan::dist {

/// While alive and while a profiler records, writes the start of a collective, or the wait for it,
/// to the trace in the form of torch's own transports: "record_param_comms" with group, ranks and
/// bytes. Its first input is the number that is equal on all ranks of the group (on both ends of a
/// message). Without a profiler it costs one check of an empty list of callbacks.
class CommScope {
 public:
  enum class Part { start, wait };

  CommScope(Part part, const Recorder& recorder, int64_t ticket);
  ~CommScope();
  CommScope(const CommScope&) = delete;

 private:
  struct Event;
  std::unique_ptr<Event> event_;  // null if no profiler records
};

}  // namespace titan::dist
