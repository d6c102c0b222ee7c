// Merges the traces that all ranks recorded of one iteration into one file for Perfetto or
// chrome://tracing: a process per rank, common time, arrows between the ranks of a collective. Used
// by titan trace.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace titan::commands {

/// The trace file of one rank.
struct RankTraceFile {
  int rank = 0;
  std::filesystem::path path;
};

/// The files `rank<R>_trace.json[.gz]` of a folder, by rank. Throws an io Error when there are
/// none.
std::vector<RankTraceFile> find_rank_traces(const std::filesystem::path& folder);

/// The merged trace, and its counts for the summary.
struct MergedTrace {
  std::string text;
  int64_t num_events = 0;
  int64_t num_collectives = 0;  ///< recorded by at least two ranks: each has arrows
};

/// Events keep their times, by the clock of each rank's machine: arrows between machines are as
/// exact as their clocks agree. Missing ranks have no events and no arrows. Throws io and data
/// Errors that name the file.
MergedTrace merge_traces(const std::vector<RankTraceFile>& files);

}  // namespace titan::commands
