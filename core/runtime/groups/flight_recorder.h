// Writes the last collectives of a rank to a file, when a run has failed or on request (SIGUSR2).
#pragma once

#include <string>

#include <titan/dist/mesh.h>
#include <titan/runs/flight_record.h>

namespace titan::core {

/// The place of the records: [comm] save_traces_folder under [job] dump_folder.
struct FlightFiles {
  std::string folder = "comm_traces";
  std::string prefix = "rank_";
};

/// The collectives that the mesh's recorder holds. Each group is named with its first rank, as
/// "fsdp.2"; a message counts as one of a group of its two ends and its direction. `doing`: the
/// rank's current activity, in words.
FlightRecord flight_record(const dist::Mesh& mesh, const std::string& doing);

/// `<folder>/<prefix><rank>`, complete or absent. Returns the path, or an empty text when it could
/// not be written. Any thread.
std::string write_flight_record(const dist::Mesh& mesh, const std::string& doing,
                                const FlightFiles& files);

}  // namespace titan::core
