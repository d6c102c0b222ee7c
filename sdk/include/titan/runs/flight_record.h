// Flight record: the last collectives and messages of one rank, in the format of PyTorch's flight
// recorder. PyTorch's analyser (torchfrtrace) reads these files, and Titan reads PyTorch's. Written
// when a run fails or on request, analysed by titan flight.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <titan/value.h>

#include <titan/export.h>

namespace titan {

/// A set of ranks that communicate, under a unique name.
struct FlightGroup {
  std::string description;  ///< "fsdp"
  std::vector<int> ranks;   ///< of the run
};

/// One collective or message of a rank.
struct FlightEntry {
  int64_t id = 0;  ///< counted over all groups since the start of the rank
  std::string group;
  std::string operation;  ///< "all_gather", "send", "recv"; without the transport's own words
  int64_t sequence = 0;   ///< within the group; equal on all its ranks
  bool is_message = false;
  int from = 0, to = 0;                       ///< of a message: ranks within the group
  std::vector<std::vector<int64_t>> in, out;  ///< sizes of tensors
  std::string dtype;
  bool is_awaited = false;  ///< the rank waits for it or has waited; false: started in advance
  bool is_done = false;
  int64_t started_ns = 0;  ///< since 1970
};

struct FlightRecord {
  int rank = 0;
  std::map<std::string, FlightGroup> groups;
  std::vector<FlightEntry> entries;  ///< oldest first
  int64_t written_ns = 0;            ///< since 1970; 0: unknown
  std::string doing;                 ///< the rank's activity; empty: unknown
  int64_t num_forgotten = 0;         ///< number of older entries that were overwritten
};

/// A pickle in the format of version 2.10 of PyTorch's flight recorder. Additional data are in a
/// member "titan".
TITAN_API std::string to_flight_file(const FlightRecord& record);

/// Reads a file of `to_flight_file` or of PyTorch. `rank`: from the file's name. Throws a data
/// Error that describes the problem.
TITAN_API FlightRecord parse_flight_file(std::string_view bytes, int rank);

/// The records of all files `<prefix><rank>` in `folder`, in order of rank. Throws an io Error if
/// there are none, a data Error that names a file that cannot be read.
TITAN_API std::vector<FlightRecord> read_flight_folder(const std::string& folder,
                                                       const std::string& prefix);

}  // namespace titan
