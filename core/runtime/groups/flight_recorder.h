// Writes what a rank has communicated last to a file, when a run has failed or somebody asks.
#pragma once

#include <string>

#include <titan/dist/mesh.h>
#include <titan/runs/flight_record.h>

namespace titan::core {

/// Where records go: [comm] save_traces_folder under [job] dump_folder.
struct FlightFiles {
  std::string folder = "comm_traces";
  std::string prefix = "rank_";
};

/// The collectives that the mesh's recorder has kept. Groups are told apart by their first rank, as
/// "fsdp.2"; messages count as those of a group of their two ends and their direction. `doing`:
/// what the rank is working on, in words.
FlightRecord flight_record(const dist::Mesh& mesh, const std::string& doing);

/// `<folder>/<prefix><rank>`, complete or absent. Returns the path, or an empty text when it could
/// not be written. Any thread.
std::string write_flight_record(const dist::Mesh& mesh, const std::string& doing,
                                const FlightFiles& files);

}  // namespace titan::core
