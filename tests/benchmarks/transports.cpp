// Measures how fast ranks of this machine exchange data: gloo and shared memory in turns, on 2 and
// 4 ranks (threads, each with its own connections). Prints a JSON line for each operation and size:
// median seconds per operation of both, and the quartiles of gloo's time over shared memory's.
//
//   transports [largest bytes, 67108864] [repeats, 15]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "plugins/devices/common/gloo_backend.h"
#include "plugins/devices/cpu/transport.h"

namespace titan::cpu {
namespace {

using dist::Backend;
using dist::Work;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

struct Case {
  std::string name;
  c10::ScalarType type;
  /// Starts the operation on `bytes` of the whole tensor.
  std::function<std::shared_ptr<Work>(Backend&, const at::Tensor& whole, const at::Tensor& part)>
      start;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"all_reduce fp32", at::kFloat,
       [](Backend& b, const at::Tensor& whole, const at::Tensor&) {
         return b.all_reduce(whole, dist::Reduce::sum);
       }},
      {"all_reduce bf16", at::kBFloat16,
       [](Backend& b, const at::Tensor& whole, const at::Tensor&) {
         return b.all_reduce(whole, dist::Reduce::sum);
       }},
      {"all_gather", at::kFloat,
       [](Backend& b, const at::Tensor& whole, const at::Tensor& part) {
         return b.all_gather(whole, part);
       }},
      {"reduce_scatter fp32", at::kFloat,
       [](Backend& b, const at::Tensor& whole, const at::Tensor& part) {
         return b.reduce_scatter(part, whole, dist::Reduce::sum);
       }},
      {"reduce_scatter bf16", at::kBFloat16,
       [](Backend& b, const at::Tensor& whole, const at::Tensor& part) {
         return b.reduce_scatter(part, whole, dist::Reduce::sum);
       }},
      {"broadcast", at::kFloat,
       [](Backend& b, const at::Tensor& whole, const at::Tensor&) {
         return b.broadcast(whole, b.size() - 1);
       }},
  };
  return all;
}

/// Seconds of one operation.
double time_of(const Case& test, Backend& backend, const at::Tensor& whole, const at::Tensor& part,
               int repeats) {
  backend.barrier()->wait();
  const double start = now();
  for (int i = 0; i < repeats; ++i)
    if (const auto work = test.start(backend, whole, part)) work->wait();
  return (now() - start) / repeats;
}

void measure(Backend& gloo, Backend& shared, int64_t largest, int repeats) {
  const int size = shared.size();
  for (const Case& test : cases()) {
    for (int64_t bytes = 4096; bytes <= largest; bytes *= 16) {
      const int64_t count = bytes / static_cast<int64_t>(c10::elementSize(test.type));
      const at::Tensor whole = at::zeros({count}, test.type);
      const at::Tensor part = at::zeros({count / size}, test.type);
      const int inner = static_cast<int>(std::clamp<int64_t>((4 << 20) / bytes, 1, 200));
      std::array<std::vector<double>, 2> seconds;
      std::vector<double> ratios;
      for (int i = -1; i < repeats; ++i) {
        const double by_gloo = time_of(test, gloo, whole, part, inner);
        const double by_memory = time_of(test, shared, whole, part, inner);
        if (i < 0) continue;  // warm-up: touches the memory
        seconds[0].push_back(by_gloo);
        seconds[1].push_back(by_memory);
        ratios.push_back(by_gloo / by_memory);
      }
      if (shared.rank() == 0) {
        std::printf(
            "{\"operation\": \"%s\", \"ranks\": %d, \"bytes\": %lld, \"gloo\": %.9f, "
            "\"shared_memory\": %.9f, \"ratio\": [%.3f, %.3f, %.3f]}\n",
            test.name.c_str(), size, static_cast<long long>(bytes), quantile(seconds[0], 0.5),
            quantile(seconds[1], 0.5), quantile(ratios, 0.25), quantile(ratios, 0.5),
            quantile(ratios, 0.75));
        std::fflush(stdout);
      }
    }
  }
}

void run(int size, int64_t largest, int repeats) {
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back([&, rank] {
      at::set_num_threads(1);
      const auto endpoint = [&](const char* name) {
        return dist::Endpoint{
            .store = *store, .name = name, .rank = rank, .size = size, .is_one_host = true};
      };
      const auto gloo = connect_gloo(endpoint("gloo"));
      const auto shared = Connector(Transport::shared_memory).connect(endpoint("shared_memory"));
      measure(*gloo, *shared, largest, repeats);
      gloo->barrier()->wait();
    });
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace titan::cpu

int main(int argc, char** argv) {
  const int64_t largest = argc > 1 ? std::atoll(argv[1]) : int64_t{64} << 20;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 15;
  for (const int size : {2, 4}) titan::cpu::run(size, largest, repeats);
}
