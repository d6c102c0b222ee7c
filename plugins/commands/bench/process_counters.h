// What a process and all that it starts have executed, as the kernel counts it (perf_event_open).
// Used by titan bench, beside wall time that a busy machine falsifies.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include <titan/program/descriptor.h>

namespace titan::commands {

/// Since the counters were opened, of all threads together.
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
  /// Why something is not counted: "no instructions and cycles: ..."; empty when all is.
  const std::string& refusal() const { return refusal_; }

 private:
  Descriptor instructions_, cycles_, clock_;
  std::string refusal_;
};

}  // namespace titan::commands
