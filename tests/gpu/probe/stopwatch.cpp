#include "stopwatch.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <titan/program/clock.h>

namespace titan::probe {

Stopwatch::Stopwatch(Device& device, bool is_small)
    : device_(device), num_launches_(is_small ? 3 : 20) {
  if (device_.device().is_cpu()) return;
  const int64_t size = is_small ? 1024 : 8192;
  blocker_ =
      at::randn({size, size}, at::TensorOptions().device(device_.device())).to(at::kBFloat16);
  product_ = at::empty_like(blocker_);
  block();
  device_.synchronize();
  const double begin = monotonic_seconds();
  block();
  device_.synchronize();
  blocker_seconds_ = monotonic_seconds() - begin;
}

Timing Stopwatch::time(const std::vector<Launch>& launches) {
  constexpr size_t kWarmups = 3;
  double host = 0;
  for (size_t i = 0; i < std::max(kWarmups, launches.size()); ++i) {
    const double begin = monotonic_seconds();
    launches[i % launches.size()]();
    host = monotonic_seconds() - begin;
  }
  device_.synchronize();
  std::vector<double> seconds =
      device_.device().is_cpu() ? by_clock(launches) : by_events(launches, host);
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front()};
}

void Stopwatch::block() {
  at::mm_out(product_, blocker_, blocker_);
}

std::vector<double> Stopwatch::by_clock(const std::vector<Launch>& launches) const {
  std::vector<double> seconds;
  for (size_t i = 0; i < num_launches_; ++i) {
    const double begin = monotonic_seconds();
    launches[i % launches.size()]();
    seconds.push_back(monotonic_seconds() - begin);
  }
  return seconds;
}

std::vector<double> Stopwatch::by_events(const std::vector<Launch>& launches, double host) {
  const c10::impl::VirtualGuardImpl guard(device_.device().type());
  const c10::Stream stream = guard.getStream(device_.device());
  std::vector<c10::Event> events;
  for (size_t i = 0; i <= num_launches_; ++i)
    events.emplace_back(device_.device().type(), c10::EventFlag::BACKEND_DEFAULT);
  const double ahead = 2 * host * static_cast<double>(num_launches_);
  const auto blocks = std::clamp<int64_t>(std::llround(ahead / blocker_seconds_), 1, 20);
  for (int64_t i = 0; i < blocks; ++i) block();
  events[0].record(stream);
  for (size_t i = 0; i < num_launches_; ++i) {
    launches[i % launches.size()]();
    events[i + 1].record(stream);
  }
  device_.synchronize();
  std::vector<double> seconds;
  for (size_t i = 0; i < num_launches_; ++i)
    seconds.push_back(events[i].elapsedTime(events[i + 1]) * 1e-3);
  return seconds;
}

}  // namespace titan::probe
