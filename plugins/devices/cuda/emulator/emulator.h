// Runs a kernel of kernels/ on the host, as a GPU might: the threads of a block take turns between
// barriers, warps exchange values by shuffles, blocks come in any order. What a GPU would let pass
// or answer with garbage ends the launch with an error that names the place. Used by tests.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "hooks.h"

namespace titan::cuda::emulator {

enum class Defect {
  global_bounds,     ///< outside of an array in global memory
  global_alignment,  ///< an access of 16 bytes at an address that is no multiple
  global_race,       ///< two threads at one element, one writing, no barrier of their block between
  shared_bounds,     ///< outside of an array in shared memory
  shared_unwritten,  ///< shared memory read before anyone wrote it
  shared_race,       ///< as global_race, in shared memory: a barrier is missing
  barrier_divergence,  ///< some threads of a block wait at a barrier that others never reach
  shuffle_divergence,  ///< the same, of a warp's lanes at a shuffle
  requirement,         ///< grid::require
};

class GridError : public std::runtime_error {
 public:
  GridError(Defect defect, const std::string& text) : std::runtime_error(text), defect_(defect) {}
  Defect defect() const { return defect_; }

 private:
  Defect defect_;
};

/// In which order threads and blocks take their turns. Results of a kernel must not depend on it.
enum class Order { forward, backward, shuffled };

/// For the launches while it lives.
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

/// `body` is run by `threads` (a multiple of 32) threads of each of `num_blocks` blocks. Throws the
/// first GridError.
void run(int64_t num_blocks, int threads, const std::function<void()>& body);

template <class Kernel>
void launch(const Kernel& kernel, int64_t num_blocks) {
  run(num_blocks, Kernel::kThreads, [&] { kernel(); });
}

}  // namespace titan::cuda::emulator
