// The traces of all ranks of one iteration in one file for Perfetto or chrome://tracing: a process
// per rank, common time, arrows between the ranks of a collective. Used by titan trace.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace titan::commands {

/// One rank's file.
struct RankTraceFile {
  int rank = 0;
  std::filesystem::path path;
};

/// The files `rank<R>_trace.json[.gz]` of a folder, by rank. Throws an io Error when there are
/// none.
std::vector<RankTraceFile> find_rank_traces(const std::filesystem::path& folder);

/// What the merging has found.
struct MergedTrace {
  std::string text;
  int64_t num_events = 0;
  int64_t num_collectives = 0;  ///< that at least two ranks have recorded: each has arrows
};

/// Events keep their times, which are the clock of each rank's machine: between machines arrows are
/// as exact as their clocks agree. Ranks that are not there have no events and no arrows. Throws io
/// and data Errors that name the file.
MergedTrace merge_traces(const std::vector<RankTraceFile>& files);

}  // namespace titan::commands
