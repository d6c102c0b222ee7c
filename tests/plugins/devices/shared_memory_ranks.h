// Ranks on threads of this process that share memory, with gloo as the reference. Used by tests of
// the transport.
#pragma once

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <titan/dist/endpoint.h>

#include "plugins/devices/common/gloo_backend.h"
#include "plugins/devices/cpu/transport.h"

namespace titan::cpu {

using at::Tensor;
using dist::Backend;
using dist::Reduce;
using std::chrono::milliseconds;
using std::chrono::minutes;

/// Runs `body` as each rank, on its own thread; throws the first error.
inline void as_ranks(int size, const std::function<void(int rank)>& body) {
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        body(rank);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

struct Connected {
  std::shared_ptr<Backend> shared, gloo;
  int rank() const { return shared->rank(); }
  int size() const { return shared->size(); }
};

inline dist::Endpoint endpoint(c10d::Store& store, const std::string& name, int rank, int size) {
  return {.store = store,
          .name = name,
          .rank = rank,
          .size = size,
          .timeout = minutes(5),
          .is_one_host = true};
}

inline std::shared_ptr<Backend> share_memory(const dist::Endpoint& here) {
  return Connector(Transport::shared_memory).connect(here);
}

/// Ranks that share memory. `judged`: each also has a gloo backend.
inline void connected(int size, bool judged, const std::function<void(const Connected&)>& body) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  as_ranks(size, [&](int rank) {
    Connected ranks;
    ranks.shared = share_memory(endpoint(*store, "g", rank, size));
    if (judged) ranks.gloo = connect_gloo(endpoint(*store, "judge", rank, size));
    body(ranks);
    if (judged) ranks.gloo->barrier()->wait();  // no rank leaves while others still communicate
  });
}

inline void finish(const std::shared_ptr<dist::Work>& work) {
  if (work) work->wait();
}

}  // namespace titan::cpu
