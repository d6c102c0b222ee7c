// Finds spans of a trace that overlap without nesting. Used by the profiler, because transports
// record messages that are in flight while the thread that started them does other work.
#pragma once

#include <string>
#include <vector>

#include <titan/runs/trace_text.h>

#include <titan/export.h>

namespace titan {

/// Viewers nest the complete events of a thread, and drop or shift an event that outlasts its
/// enclosing event. This removes such events from `parts` and returns each as a pair of
/// asynchronous events, which viewers draw in separate rows.
TITAN_API std::vector<std::string> take_overlaps(TraceParts& parts);

}  // namespace titan
