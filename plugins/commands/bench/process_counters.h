// CPU time, instructions and cycles of a process and its descendants, counted by the kernel
// (perf_event_open). Used by titan bench because wall time is unreliable on a busy machine.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include <titan/program/descriptor.h>

namespace titan::commands {

/// Totals of all threads since the counters were opened.
struct CpuCounts {
  double cpu_seconds = 0;
  std::optional<double> instructions, cycles;  ///< of user mode; a virtual machine often has none
};

CpuCounts operator-(const CpuCounts& a, const CpuCounts& b);

class ProcessCounters {
 public:
  /// Counts `process` and every thread and process that it starts from now on.
  explicit ProcessCounters(pid_t process);

  /// None when the kernel allows no counters here.
  std::optional<CpuCounts> read() const;
  /// Why some counts are missing: "no instructions and cycles: ..."; empty when none is.
  const std::string& refusal() const { return refusal_; }

 private:
  Descriptor instructions_, cycles_, clock_;
  std::string refusal_;
};

}  // namespace titan::commands
