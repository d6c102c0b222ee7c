// Runs a kernel of kernels/ on the host, for tests. The threads of a block take turns between
// barriers, warps exchange values by shuffles, and blocks run in any order. Defects that a GPU
// would ignore or answer with garbage end the launch with an error that names the source line.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "hooks.h"

namespace titan::cuda::emulator {

enum class Defect {
  global_bounds,       ///< outside of an array in global memory
  global_alignment,    ///< an access at an address that is not a multiple of its bytes
  global_race,         ///< two threads access one element, one writes, no barrier between them
  shared_bounds,       ///< outside of an array in shared memory
  shared_unwritten,    ///< shared memory read before any thread wrote it
  shared_race,         ///< as global_race, in shared memory: a barrier is missing
  barrier_divergence,  ///< some threads of a block do not reach a barrier
  shuffle_divergence,  ///< some lanes of a warp do not reach a shuffle
  requirement,         ///< grid::require
};

class GridError : public std::runtime_error {
 public:
  GridError(Defect defect, const std::string& text) : std::runtime_error(text), defect_(defect) {}
  Defect defect() const { return defect_; }

 private:
  Defect defect_;
};

/// Order in which threads and blocks take turns. A kernel's results must not depend on it.
enum class Order { forward, backward, shuffled };

/// Sets the order of launches during its lifetime.
class ScopedOrder {
 public:
  explicit ScopedOrder(Order order);
  ~ScopedOrder();
  ScopedOrder(const ScopedOrder&) = delete;
  ScopedOrder& operator=(const ScopedOrder&) = delete;

 private:
  Order before_;
};

/// Counted since the program started.
struct Totals {
  int64_t launches = 0, barriers = 0, shared_bytes_of_largest_block = 0;
};
const Totals& totals();

/// Runs `body` in `threads` (a multiple of 32) threads of each of `num_blocks` blocks. Throws the
/// first GridError.
void run(int64_t num_blocks, int threads, const std::function<void()>& body);

template <class Kernel>
void launch(const Kernel& kernel, int64_t num_blocks) {
  run(num_blocks, Kernel::kThreads, [&] { kernel(); });
}

}  // namespace titan::cuda::emulator
