// Identifies collectives in the trace of a rank and draws arrows from their start to the wait for
// them. Used by the profiler and by titan trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>
#include <titan/runs/trace_text.h>

namespace titan {

/// One of Titan's "record_param_comms" events: the start of a collective, or the wait for it.
struct TracedCollective {
  std::string group;      ///< "fsdp"
  std::string operation;  ///< "all_gather", "send to 3": a rank of the group
  int64_t sequence = 0;   ///< equal on all ranks of the group, or on both ends of a message
  bool is_wait = false;
  double begin = 0;  ///< "ts" of the event
  std::string_view pid, tid;
};

/// Absent for any other event, including those of the transport.
TITAN_API std::optional<TracedCollective> traced_collective(std::string_view event);

/// One end of an arrow as an event: a flow of `category`, whose ends share `id`. `end` is 's' or
/// 'f', or 't' in between.
TITAN_API std::string flow_event(char end, std::string_view category, int64_t id, double time,
                                 std::string_view pid, std::string_view tid);

/// An arrow from each collective to the wait for it, as events.
TITAN_API std::vector<std::string> wait_arrows(const TraceParts& parts);

}  // namespace titan
