// Explains a hang from the last collectives of each rank: which rank waits for which, which ranks
// are late or missing, and which collectives differ between ranks. Used by titan flight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/runs/flight_record.h>

namespace titan::commands {

/// A collective in which ranks wait, or whose calls differ between ranks.
struct FlightFinding {
  enum class Kind {
    missing,    ///< some members have not called it, the others wait
    differs,    ///< members called it with different operations or sizes
    unfinished  ///< all members called it and none has finished: the transport or the network hangs
  };
  Kind kind = Kind::missing;
  FlightEntry entry;               ///< as recorded by the first waiting rank
  std::vector<int> members;        ///< of its group
  std::vector<int> waiting;        ///< ranks that called it and have not finished
  std::vector<int> absent;         ///< members that have not called it
  double waiting_seconds = -1;     ///< of the longest wait, when the file was written; < 0: unknown
  std::vector<std::string> notes;  ///< for `differs`: the call of each rank
};

struct FlightVerdict {
  std::vector<FlightFinding> findings;  ///< in order of their start
  /// Ranks that others wait for, directly or indirectly, and that wait for no rank themselves. For
  /// a cycle of waiting ranks, all ranks of the cycle.
  std::vector<int> culprits;
  std::vector<int> unknown;  ///< ranks of the run without a file
};

/// `records`: in order of rank.
FlightVerdict judge(const std::vector<FlightRecord>& records);

/// For people: the culprits first, then each finding, then what each rank was doing.
std::string to_text(const FlightVerdict& verdict, const std::vector<FlightRecord>& records);
Value to_value(const FlightVerdict& verdict);

}  // namespace titan::commands
