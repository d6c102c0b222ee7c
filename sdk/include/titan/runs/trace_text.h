// Splits traces in Chrome's format into events as text, without parsing them all into memory. Used
// by the profiler, which extends LibTorch's traces, and by titan trace.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <titan/value.h>

#include <titan/export.h>

namespace titan {

/// Views of a trace's parts in its text, which outlives this.
struct TraceParts {
  std::string_view before;               ///< up to the first event: `{ ..., "traceEvents": [`
  std::vector<std::string_view> events;  ///< each a JSON object
  std::string_view after;                ///< from the end of the events: `], ... }`
};

/// Throws a data Error with the offset of the first invalid text.
TITAN_API TraceParts split_trace(std::string_view text);

/// The other members of the trace: "distributedInfo", "baseTimeNanoseconds" and so on.
TITAN_API Value trace_properties(const TraceParts& parts);

/// The text of a member of an event or of its "args", without parsing the rest: from `"name": ` up
/// to the comma or brace that ends it, strings without their quotes. Empty if there is none. For
/// names that occur once in an event.
TITAN_API std::string_view member_text(std::string_view event, std::string_view name);

/// The text of the trace with `more` events at the end.
TITAN_API std::string with_events(const TraceParts& parts, const std::vector<std::string>& more);

/// The text of a trace file, gzipped or not. Throws an io or data Error that names the file.
TITAN_API std::string read_trace(const std::filesystem::path& path);
/// Compresses with gzip if the name ends in ".gz". The file is complete or absent.
TITAN_API void write_trace(const std::filesystem::path& path, std::string_view text);

}  // namespace titan
