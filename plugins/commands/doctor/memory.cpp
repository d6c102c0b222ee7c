// Memory: of the machine, of the control group and of the process.
#include <sys/resource.h>

#include <algorithm>
#include <sstream>

#include <titan/program/quantity_text.h>

#include "checks.h"
#include "system_files.h"

namespace titan::commands {
namespace {

constexpr int64_t kLeast = 1'000'000'000;  // LibTorch and a small model
constexpr int64_t kLeastAddresses =
    16'000'000'000;  // LibTorch with its CUDA libraries maps several GB

struct Group {
  std::string limit_file;
  std::optional<int64_t> limit, used;
};

/// Bytes in use, without cached files, which the kernel drops before it kills.
int64_t used_in(const std::string& folder, bool is_second) {
  const int64_t used =
      number_in_file(folder + (is_second ? "/memory.current" : "/memory.usage_in_bytes"))
          .value_or(0);
  const std::string statistics = text_of_file(folder + "/memory.stat");
  const int64_t cached =
      number_after(statistics, is_second ? "inactive_file " : "total_inactive_file ").value_or(0);
  return std::max<int64_t>(0, used - cached);
}

/// The tightest memory limit of the control groups that this process is in; version 2, then 1.
Group tightest_group() {
  Group best;
  const std::string groups = text_of_file("/proc/self/cgroup");
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const bool is_second = line.starts_with("0::");
    const size_t colon = line.find(":memory:");
    if (!is_second && colon == std::string::npos) continue;
    const std::string root = is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string path = is_second ? line.substr(3) : line.substr(colon + 8);
    while (true) {
      const std::string folder = root + (path == "/" ? "" : path);
      const std::string file = folder + (is_second ? "/memory.max" : "/memory.limit_in_bytes");
      const auto limit = number_in_file(file);
      if (limit && *limit < (int64_t{1} << 60) && (!best.limit || *limit < *best.limit))
        best = {file, limit, used_in(folder, is_second)};
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return best;
}

std::string amount(int64_t bytes) {
  return bytes_text(static_cast<double>(bytes));
}

void check_addresses(int resource, const char* name, const char* flag, Findings& findings) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return;
  const auto bytes = static_cast<int64_t>(limit.rlim_cur);
  if (bytes >= kLeastAddresses) return findings.ok(name, amount(bytes));
  findings.add({name, Health::problem, amount(bytes), amount(kLeastAddresses) + ", or unlimited",
                "LibTorch cannot be loaded, or a step runs out of addresses",
                std::string("ulimit ") + flag + " unlimited"});
}

}  // namespace

void check_memory(const JobNeeds& needs, Findings& findings) {
  const std::string text = text_of_file("/proc/meminfo");
  auto available = number_after(text, "MemAvailable:"), total = number_after(text, "MemTotal:");
  const int64_t wanted = std::max(kLeast, needs.bytes_of_ranks.value_or(0));
  const std::string limit =
      needs.bytes_of_ranks ? amount(wanted) + " for the ranks of this job" : amount(wanted);
  if (!available || !total) {
    findings.add({"memory", Health::warning, "/proc/meminfo cannot be read", "MemAvailable",
                  "nothing by itself; a run that needs more memory than there is would be killed",
                  "mount -t proc proc /proc"});
  } else {
    const std::string value =
        amount(*available * 1024) + " of " + amount(*total * 1024) + " available";
    if (*available * 1024 >= wanted)
      findings.ok("memory", value);
    else
      findings.add({"memory", Health::problem, value, limit,
                    "a rank is killed when memory runs out",
                    "end other programs: ps aux --sort=-rss | head; or take a smaller batch: "
                    "--training.local_batch_size N"});
  }
  if (const Group group = tightest_group(); group.limit) {
    const int64_t free = *group.limit - std::min(*group.limit, group.used.value_or(0));
    const std::string value =
        amount(*group.limit) + " for this control group, " + amount(free) + " free";
    if (free >= wanted)
      findings.ok("memory.cgroup", value);
    else
      findings.add({"memory.cgroup", Health::problem, value, limit,
                    "the kernel kills a rank that takes more (exit code 137)",
                    "echo " + std::to_string(2 * wanted) + " > " + group.limit_file +
                        "; or start with more memory (Slurm: --mem, Docker: --memory, Kubernetes: "
                        "resources.limits.memory)"});
  }
  check_addresses(RLIMIT_AS, "memory.addresses", "-v", findings);
  check_addresses(RLIMIT_DATA, "memory.data", "-d", findings);
}

}  // namespace titan::commands
