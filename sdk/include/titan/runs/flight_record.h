// What one rank has communicated last, as PyTorch's flight recorder writes it: its own analyser
// (torchfrtrace) reads these files, and theirs can be read here. Written when a run fails or is
// asked to, judged by titan flight.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <titan/value.h>

#include <titan/export.h>

namespace titan {

/// A set of ranks that communicate, under a name that no other set has.
struct FlightGroup {
  std::string description;  ///< "fsdp"
  std::vector<int> ranks;   ///< of the run
};

/// One collective or message of a rank.
struct FlightEntry {
  int64_t id = 0;  ///< counted over all groups since the start of the rank
  std::string group;
  std::string operation;  ///< "all_gather", "send", "recv"; words of the transport are dropped
  int64_t sequence = 0;   ///< within the group; equal on all its ranks
  bool is_message = false;
  int from = 0, to = 0;                       ///< of a message: places in the group
  std::vector<std::vector<int64_t>> in, out;  ///< sizes of tensors
  std::string dtype;
  bool is_awaited = false;  ///< the rank stood in it, or does; not just started to go on meanwhile
  bool is_done = false;
  int64_t started_ns = 0;  ///< since 1970
};

struct FlightRecord {
  int rank = 0;
  std::map<std::string, FlightGroup> groups;
  std::vector<FlightEntry> entries;  ///< oldest first
  int64_t written_ns = 0;            ///< since 1970; 0: not known
  std::string doing;                 ///< what the rank was working on; empty: not known
  int64_t num_forgotten = 0;         ///< older entries that there was no room for
};

/// A pickle in the format of version 2.10 of PyTorch's flight recorder. Facts that it has no place
/// for stand in a member "titan" of their own.
TITAN_API std::string to_flight_file(const FlightRecord& record);

/// Reads what `to_flight_file` or PyTorch has written. `rank`: from the file's name. Throws a data
/// Error that says what is wrong.
TITAN_API FlightRecord parse_flight_file(std::string_view bytes, int rank);

/// Of all files `<prefix><rank>` in `folder`, in order of rank. Throws an io Error when there are
/// none, a data Error naming the file that cannot be read.
TITAN_API std::vector<FlightRecord> read_flight_folder(const std::string& folder,
                                                       const std::string& prefix);

}  // namespace titan
