// Why a run stands still, from what its ranks have communicated last: who waits for whom, who came
// late or never, and which collective differs between ranks. Used by titan flight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/runs/flight_record.h>

namespace titan::commands {

/// A collective in which ranks stand, or in which they contradict each other.
struct FlightFinding {
  enum class Kind {
    missing,    ///< some members have not come, the others wait
    differs,    ///< they came with different operations or sizes
    unfinished  ///< all have come and none is through: the transport or the network
  };
  Kind kind = Kind::missing;
  FlightEntry entry;            ///< as the first waiting rank sees it
  std::vector<int> members;     ///< of its group
  std::vector<int> waiting;     ///< ranks that are in it
  std::vector<int> absent;      ///< members that have not come to it
  double waiting_seconds = -1;  ///< of who waits longest, when its file was written; < 0: not known
  std::vector<std::string> notes;  ///< differs: what each rank came with
};

struct FlightVerdict {
  std::vector<FlightFinding> findings;  ///< those that began first come first
  /// Ranks that others wait for, directly or by detours, and that wait for nobody themselves; of
  /// ranks that wait for each other in a circle, all of it.
  std::vector<int> culprits;
  std::vector<int> unknown;  ///< ranks of the run that have left no file
};

/// `records`: in order of rank.
FlightVerdict judge(const std::vector<FlightRecord>& records);

/// For people: the culprits first, then each finding, then what each rank was doing.
std::string to_text(const FlightVerdict& verdict, const std::vector<FlightRecord>& records);
Value to_value(const FlightVerdict& verdict);

}  // namespace titan::commands
