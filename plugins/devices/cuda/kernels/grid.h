// The interface between a kernel and its grid: thread and block index, barriers, shuffles, shared
// and global memory. Kernels use nothing else. So one source is compiled by nvcc for a GPU, and by
// any C++ compiler for the emulator (../emulator), which checks every access.
//
// Rules for a kernel: a struct of plain data with `kThreads` (a multiple of 32), `kBlocks` (blocks
// that a multiprocessor must be able to hold at a time, which limits the registers), and
// `TITAN_DEVICE void operator()() const`. All threads of a block reach each barrier, all lanes of a
// warp each shuffle. A kernel includes neither LibTorch's headers nor the toolkit's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
// called by the toolkit's assert; the toolkit's headers declare it only if NDEBUG is not defined
extern "C" __device__ void __assertfail(const char* what, const char* file, unsigned line,
                                        const char* function, size_t char_bytes);
#define TITAN_DEVICE __device__ __forceinline__
#define TITAN_ON_DEVICE 1
#else
#define TITAN_DEVICE inline
#define TITAN_ON_DEVICE 0
#include <math.h>

#include "../emulator/hooks.h"
#endif

namespace titan::cuda::grid {

inline constexpr int kWarp = 32;
/// The widest access of a thread, in bytes.
inline constexpr int kAccess = 16;

#if TITAN_ON_DEVICE
/// Source location of an access; only the emulator has it.
struct Where {
  TITAN_DEVICE static Where current() { return {}; }
};
TITAN_DEVICE int thread() {
  return static_cast<int>(threadIdx.x);
}
TITAN_DEVICE int64_t block() {
  return blockIdx.x;
}
TITAN_DEVICE int64_t num_blocks() {
  return gridDim.x;
}
TITAN_DEVICE void sync_block() {
  __syncthreads();
}
template <class T>
TITAN_DEVICE T shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  uint32_t words[sizeof(T) / sizeof(uint32_t)];
  memcpy(words, &value, sizeof(T));
  for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
  memcpy(&value, words, sizeof(T));
  return value;
}
#else
using emulator::Where;
inline int thread() {
  return emulator::thread();
}
inline int64_t block() {
  return emulator::block();
}
inline int64_t num_blocks() {
  return emulator::num_blocks();
}
inline void sync_block(Where where = Where::current()) {
  emulator::sync_block(where);
}
template <class T>
T shuffle_xor(T value, int mask, Where where = Where::current()) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof(T));
  word = emulator::shuffle_xor(word, mask, where);
  __builtin_memcpy(&value, &word, sizeof(T));
  return value;
}
#endif

/// N numbers, read or written in one access if they fill 2, 4, 8 or 16 bytes, in several accesses
/// of 16 bytes if they fill more.
template <class T, int N>
struct alignas(N * sizeof(T) < kAccess ? N * sizeof(T) : kAccess) Piece {
  T values[N];
  TITAN_DEVICE T& operator[](int i) { return values[i]; }
  TITAN_DEVICE const T& operator[](int i) const { return values[i]; }
};

/// Elements 0 ... size - 1 in global memory. The GPU checks nothing. The emulator checks bounds,
/// alignment and races between threads.
template <class T>
struct Span {
  using Value = std::remove_const_t<T>;
  T* data = nullptr;
  int64_t size = 0;

  TITAN_DEVICE Value load(int64_t i, Where where = Where::current()) const {
    return piece<1>(i, where)[0];
  }
  TITAN_DEVICE void store(int64_t i, Value value, Where where = Where::current()) const {
    put(i, Piece<Value, 1>{{value}}, where);
  }

  /// Elements i ... i + N - 1; i is a multiple of N.
  template <int N>
  TITAN_DEVICE Piece<Value, N> piece(int64_t i, Where where = Where::current()) const {
#if TITAN_ON_DEVICE
    Piece<Value, N> out;
    move<N, false>(&out, data + i);
    return out;
#else
    emulator::check_global({data, sizeof(T), size}, i, N, alignof(Piece<Value, N>),
                           emulator::Access::read, where);
    Piece<Value, N> out;
    __builtin_memcpy(&out, data + i, sizeof(out));
    return out;
#endif
  }
  template <int N>
  TITAN_DEVICE void put(int64_t i, const Piece<Value, N>& value,
                        Where where = Where::current()) const {
#if TITAN_ON_DEVICE
    move<N, true>(data + i, &value);
#else
    emulator::check_global({data, sizeof(T), size}, i, N, alignof(Piece<Value, N>),
                           emulator::Access::write, where);
    __builtin_memcpy(data + i, &value, sizeof(value));
#endif
  }

 private:
#if TITAN_ON_DEVICE
  template <class Word, bool to_global>
  TITAN_DEVICE static void move_as(void* to, const void* from, int count) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const Word word = static_cast<const Word*>(from)[i];
      if constexpr (to_global && std::is_same_v<Word, uint4>) {
        // one instruction; the compiler would split a store of 16-bit numbers into four
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                         __cvta_generic_to_global(static_cast<Word*>(to) + i)),
                     "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
                     : "memory");
      } else {
        static_cast<Word*>(to)[i] = word;
      }
    }
  }
  template <int N, bool to_global>
  TITAN_DEVICE static void move(void* to, const void* from) {
    constexpr int kBytes = N * static_cast<int>(sizeof(T));
    if constexpr (kBytes % 16 == 0) {
      move_as<uint4, to_global>(to, from, kBytes / 16);
    } else if constexpr (kBytes % 8 == 0) {
      move_as<uint2, to_global>(to, from, kBytes / 8);
    } else if constexpr (kBytes % 4 == 0) {
      move_as<uint32_t, to_global>(to, from, kBytes / 4);
    } else if constexpr (kBytes % 2 == 0) {
      move_as<uint16_t, to_global>(to, from, kBytes / 2);
    } else {
      move_as<uint8_t, to_global>(to, from, kBytes);
    }
  }
#endif
};

/// Numbers that the threads of a block share. The emulator detects reads of unwritten elements and
/// races: accesses of two threads, one of them writing, without a barrier in between.
template <class T>
class Shared {
 public:
#if TITAN_ON_DEVICE
  TITAN_DEVICE Shared(T* data, int) : data_(data) {}
  TITAN_DEVICE T load(int i) const {
    return data_[i];
  }
  TITAN_DEVICE void store(int i, T value) const {
    data_[i] = value;
  }

 private:
  T* data_;
#else
  Shared(emulator::SharedArray array) : array_(array) {}
  T load(int i, Where where = Where::current()) const {
    T value;
    __builtin_memcpy(&value, emulator::check_shared(array_, i, emulator::Access::read, where),
                     sizeof(T));
    return value;
  }
  void store(int i, T value, Where where = Where::current()) const {
    __builtin_memcpy(emulator::check_shared(array_, i, emulator::Access::write, where), &value,
                     sizeof(T));
  }

 private:
  emulator::SharedArray array_;
#endif
};

// Declares `name`, a Shared<type> of `count` elements (a constant).
#if TITAN_ON_DEVICE
#define TITAN_SHARED(type, name, count)  \
  __shared__ type name##_storage[count]; \
  const ::titan::cuda::grid::Shared<type> name(name##_storage, count)
#else
#define TITAN_SHARED(type, name, count)         \
  const ::titan::cuda::grid::Shared<type> name( \
      ::titan::cuda::emulator::shared_array(#name, sizeof(type), count))
#endif

/// Ends the launch if `holds` is false, for checks of values on the device. On a GPU the error
/// appears at the next synchronisation, as with ATen's assertions.
TITAN_DEVICE void require(bool holds, const char* what) {
#if TITAN_ON_DEVICE
  if (!holds) __assertfail(what, __FILE__, __LINE__, "titan", 1);
#else
  if (!holds) emulator::fail_requirement(what);
#endif
}

TITAN_DEVICE int lane() {
  return thread() % kWarp;
}
TITAN_DEVICE int warp() {
  return thread() / kWarp;
}

}  // namespace titan::cuda::grid
