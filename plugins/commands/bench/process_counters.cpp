#include "process_counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>

#include <cstdint>

namespace titan::commands {
namespace {

struct Reading {
  uint64_t value = 0, enabled = 0, running = 0;
};

Descriptor open_counter(uint32_t type, uint64_t event, pid_t process) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = event;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return Descriptor(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, process, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

/// Extrapolated when the kernel multiplexed the counter with others.
std::optional<double> value_of(const Descriptor& counter) {
  Reading reading;
  if (!counter.is_open()) return std::nullopt;
  if (::read(counter.get(), &reading, sizeof reading) != sizeof reading) return std::nullopt;
  if (reading.running == 0) return 0.0;
  return static_cast<double>(reading.value) * static_cast<double>(reading.enabled) /
         static_cast<double>(reading.running);
}

}  // namespace

CpuCounts operator-(const CpuCounts& a, const CpuCounts& b) {
  const auto less = [](const std::optional<double>& from, const std::optional<double>& what) {
    return from && what ? std::optional(*from - *what) : std::nullopt;
  };
  return {a.cpu_seconds - b.cpu_seconds, less(a.instructions, b.instructions),
          less(a.cycles, b.cycles)};
}

ProcessCounters::ProcessCounters(pid_t process) {
  const auto open = [&](uint32_t type, uint64_t event, const char* what) {
    Descriptor counter = open_counter(type, event, process);
    if (!counter.is_open() && refusal_.empty())
      refusal_ = std::string("no ") + what + ": perf_event_open says " + system_message(errno) +
                 " (see kernel.perf_event_paranoid, and whether the machine has counters)";
    return counter;
  };
  clock_ = open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "CPU seconds by step");
  instructions_ = open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions and cycles");
  cycles_ = open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
}

std::optional<CpuCounts> ProcessCounters::read() const {
  const auto nanoseconds = value_of(clock_);
  if (!nanoseconds) return std::nullopt;
  return CpuCounts{*nanoseconds / 1e9, value_of(instructions_), value_of(cycles_)};
}

}  // namespace titan::commands
