// Collectives in the trace of a rank: which they are, and the arrows that lead from a start to its
// wait. Used by the profiler and by titan trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>
#include <titan/runs/trace_text.h>

namespace titan {

/// One event "record_param_comms" of Titan's own: the start of a collective, or the wait for one.
struct TracedCollective {
  std::string group;      ///< "fsdp"
  std::string operation;  ///< "all_gather", "send to 3": a place in the group
  int64_t sequence = 0;   ///< equal on all ranks of the group; of messages, on both ends
  bool is_wait = false;
  double begin = 0;  ///< "ts" of the event
  std::string_view pid, tid;
};

/// Nothing for any other event, those of the transport among them.
TITAN_API std::optional<TracedCollective> traced_collective(std::string_view event);

/// The two ends of an arrow as events: flows of `category` that share `id`. `end` is 's' or 'f', or
/// 't' in between.
TITAN_API std::string flow_event(char end, std::string_view category, int64_t id, double time,
                                 std::string_view pid, std::string_view tid);

/// An arrow from each collective to the wait for it, as events.
TITAN_API std::vector<std::string> wait_arrows(const TraceParts& parts);

}  // namespace titan
