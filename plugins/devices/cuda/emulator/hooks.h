// The functions that kernels/grid.h calls without a GPU. emulator.cpp implements them; its fibers
// are the threads of a block. Only tests link it: the plugin compiles these declarations and calls
// none of them.
#pragma once

#include <cstdint>
#include <source_location>

namespace titan::cuda::emulator {

/// Position of an access in a kernel's source.
using Where = std::source_location;

enum class Access { read, write };

/// An array in global memory.
struct GlobalArray {
  const void* data;
  uint64_t element_bytes;
  int64_t size;
};
/// The number of an array in the block's shared memory.
struct SharedArray {
  int number;
};

int thread();
int64_t block();
int64_t num_blocks();
void sync_block(Where where);
/// Returns the value that lane `lane ^ mask` passes to the same call.
uint64_t shuffle_xor(uint64_t value, int mask, Where where);

void check_global(const GlobalArray& array, int64_t first, int64_t count, uint64_t alignment,
                  Access access, Where where);
/// The array `name` of this block, the same for all its threads.
SharedArray shared_array(const char* name, uint64_t element_bytes, int count);
/// Address of element `i`.
void* check_shared(SharedArray array, int i, Access access, Where where);
[[noreturn]] void fail_requirement(const char* what);

float float_of_half(uint16_t bits);
uint16_t half_of_float(float value);

}  // namespace titan::cuda::emulator
