// Open files, processes and processors.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "checks.h"
#include "system_files.h"

namespace titan::commands {
namespace {

constexpr rlim_t kFewestFiles = 256, kEnoughFiles = 1024;
constexpr rlim_t kFewestProcesses = 128;

void check_open_files(Findings& findings) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (limit.rlim_cur >= kEnoughFiles)
    return findings.ok("open_files", std::to_string(limit.rlim_cur));
  const bool can_raise = limit.rlim_max >= kEnoughFiles;
  findings.add(
      {"open_files", limit.rlim_cur < kFewestFiles ? Health::problem : Health::warning,
       std::to_string(limit.rlim_cur), std::to_string(kEnoughFiles),
       "data sets of many files, and connections between many ranks: \"Too many open files\"",
       can_raise ? "ulimit -n " + std::to_string(kEnoughFiles)
                 : "ask for a higher hard limit: nofile in /etc/security/limits.conf"});
}

void check_processes(Findings& findings) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0) return;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kFewestProcesses)
    return findings.ok("processes", limit.rlim_cur == RLIM_INFINITY
                                        ? "unlimited"
                                        : std::to_string(limit.rlim_cur));
  findings.add({"processes", Health::problem, std::to_string(limit.rlim_cur),
                std::to_string(kFewestProcesses),
                "threads of LibTorch and of data loaders cannot be started",
                limit.rlim_max >= kFewestProcesses
                    ? "ulimit -u " + std::to_string(kFewestProcesses)
                    : "ask for a higher hard limit: nproc in /etc/security/limits.conf"});
}

}  // namespace

void check_limits(Findings& findings) {
  check_open_files(findings);
  check_processes(findings);
  cpu_set_t set;
  const int usable = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  const long there = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::string value = std::to_string(usable) + " of " + std::to_string(there) + " processors";
  std::istringstream quota(text_of_file("/sys/fs/cgroup/cpu.max"));
  double share = 0, period = 0;
  if (quota >> share >> period && share < usable * period) {
    std::ostringstream text;
    text << ", limited to the time of " << share / period;
    value += text.str();
  }
#if defined(__x86_64__)
  const std::string info = text_of_file("/proc/cpuinfo");
  if (!info.empty() && info.find(" avx2") == std::string::npos)
    return findings.add({"processor", Health::warning, value + ", without AVX2", "AVX2",
                         "nothing; LibTorch computes several times slower",
                         "take a machine with AVX2: lscpu | grep avx2"});
#endif
  findings.ok("processor", value);
}

}  // namespace titan::commands
