// Allocates the host memory of tensors, from the pool of freed blocks or from the C library. Used
// by the cpu device and its counting allocator.
#pragma once

#include <cstddef>

namespace titan::cpu {

/// From now on LibTorch's large blocks of host memory come from a MemoryPool, for the whole
/// process. Does nothing under a sanitizer, which must see each free.
void keep_memory();

/// A block whose address is a multiple of 64; throws when memory is exhausted. Thread-safe.
void* take_memory(size_t num_bytes);
void give_memory_back(void* block);

/// Resets the pool's peak, see MemoryPool::reset_peak.
void reset_kept_peak();

}  // namespace titan::cpu
