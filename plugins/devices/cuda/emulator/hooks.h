// What kernels/grid.h asks where there is no GPU: answered by emulator.cpp, whose fibers are the
// threads of a block. Only tests link it; the plugin compiles these declarations and calls none.
#pragma once

#include <cstdint>
#include <source_location>

namespace titan::cuda::emulator {

/// Where in a kernel's source an access stands.
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
/// What the lane with number `lane ^ mask` brings to the same call.
uint64_t shuffle_xor(uint64_t value, int mask, Where where);

void check_global(const GlobalArray& array, int64_t first, int64_t count, uint64_t alignment,
                  Access access, Where where);
/// The same for all threads of a block that ask by the same name.
SharedArray shared_array(const char* name, uint64_t element_bytes, int count);
/// Where element `i` lies.
void* check_shared(SharedArray array, int i, Access access, Where where);
[[noreturn]] void fail_requirement(const char* what);

float float_of_half(uint16_t bits);
uint16_t half_of_float(float value);

}  // namespace titan::cuda::emulator
