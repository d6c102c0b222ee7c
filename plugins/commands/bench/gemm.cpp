#include "gemm.h"

#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <vector>

#include <titan/error.h>
#include <titan/program/environment.h>
#include <titan/program/installation.h>
#include <titan/program/side_program.h>

namespace titan::commands {
namespace {

constexpr const char* kHost = "cpu";  // a machine has one device of this type

int num_cpus() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::string all_of(const Descriptor& stream) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::read(stream.get(), buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return text;
    pollfd polled = {stream.get(), POLLIN, 0};
    if (count < 0) ::poll(&polled, 1, -1);
  }
}

double flops_of(const StartedChild& child) {
  const std::string output = all_of(child.output), errors = all_of(child.errors);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  TITAN_CHECK(status == 0, io, "titan-probe ", how_it_ended(status), ": ", errors,
              "; --no-gemm skips this measurement");
  return parse_json(output).at("flops").as_number();
}

}  // namespace

std::optional<double> measured_gemm(const BenchFigures& figures, const SignalInbox& signals) {
  if (figures.compute_dtype.empty()) return std::nullopt;
  const auto probe = side_program("titan-probe");
  const int ranks = static_cast<int>(figures.ranks);
  std::map<std::string, std::string> variables = Environment::of_process().variables();
  if (ranks > 1 && !Environment(variables).has("OMP_NUM_THREADS"))
    variables["OMP_NUM_THREADS"] = std::to_string(std::max(1, num_cpus() / ranks));
  const std::vector<std::string> environment =
      environment_with_torch(installation_folder(), Environment(variables));
  std::vector<StartedChild> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string device = figures.device_name == kHost
                                   ? figures.device_name
                                   : figures.device_name + ":" + std::to_string(rank);
    children.push_back(start_child({.program = probe.string(),
                                    .arguments = {"gemm", device, figures.compute_dtype},
                                    .environment = environment},
                                   signals.outer_mask()));
  }
  double flops = 0;
  for (const StartedChild& child : children) flops += flops_of(child);
  return flops;
}

}  // namespace titan::commands
