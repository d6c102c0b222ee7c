// Spans of a trace that are not nested. Used by the profiler: transports tell of messages that go
// on while the thread that started them does something else.
#pragma once

#include <string>
#include <vector>

#include <titan/runs/trace_text.h>

#include <titan/export.h>

namespace titan {

/// Viewers draw the complete events of a thread inside each other, and drop or shift one that
/// outlasts what it began in. Takes these out of `parts` and returns each as a pair of asynchronous
/// events, which have rows of their own.
TITAN_API std::vector<std::string> take_overlaps(TraceParts& parts);

}  // namespace titan
