#include "tests/sdk/dist/thread_ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "tests/plugins/registry.h"

namespace titan::testing {
namespace {

/// Joins `rank` to each group; `device` and `store` must outlive the result.
dist::Mesh::Connect joins(int rank, Device& device, c10d::Store& store) {
  return [rank, &device, &store](const std::string& name, const std::vector<int>& ranks) {
    std::string key = name;
    for (const int member : ranks) key += "." + std::to_string(member);
    const auto place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return device.connect({.store = store,
                           .name = key,
                           .rank = static_cast<int>(place),
                           .size = static_cast<int>(ranks.size()),
                           .timeout = std::chrono::minutes(10),
                           .is_one_host = true});
  };
}

}  // namespace

std::unique_ptr<Device> make_cpu() {
  return create<Device>("cpu", Value::map(), {});
}

void run_ranks(const dist::Grid& grid, const std::function<void(const dist::Mesh&)>& body) {
  // c10d's own flight recorder is one per process and does not support several ranks in it
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const std::unique_ptr<Device> device = make_cpu();  // opens the plugin before the threads start
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(grid.world_size()));
  // no rank finishes and leaves while another one still connects
  std::latch all_have_tried(grid.world_size());
  for (int rank = 0; rank < grid.world_size(); ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      std::optional<dist::Mesh> mesh;
      try {
        mesh.emplace(grid, rank, joins(rank, *device, *store));
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
      all_have_tried.arrive_and_wait();
      try {
        if (mesh) body(*mesh);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace titan::testing
