// Where the memory of tensors comes from: what freed ones left, or the C library. Used by the cpu
// device and its count of tensors.
#pragma once

#include <cstddef>

namespace titan::cpu {

/// From now on LibTorch's large blocks of host memory come from a MemoryPool, for the whole
/// process. Does nothing where a sanitizer watches the memory, which is to know what is freed.
void keep_memory();

/// A block at a multiple of 64; throws where there is none. Thread-safe.
void* take_memory(size_t num_bytes);
void give_memory_back(void* block);

/// Of the pool, see MemoryPool::reset_peak.
void reset_kept_peak();

}  // namespace titan::cpu
