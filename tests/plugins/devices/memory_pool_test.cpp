// The pool that keeps memory of freed tensors on the CPU.
#include "plugins/devices/cpu/memory_pool.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace titan::cpu {
namespace {

constexpr size_t kMiB = 1 << 20;

/// Resident bytes of this process.
int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

struct Block {
  char* data;
  size_t size;
  char mark;
};

/// Allocates and fills a block.
Block take(MemoryPool& pool, size_t size, char mark = 1) {
  const Block block{static_cast<char*>(pool.take(size)), size, mark};
  if (block.data != nullptr) std::memset(block.data, mark, size);
  return block;
}

bool is_intact(const Block& block) {
  return std::all_of(block.data, block.data + block.size,
                     [&](char byte) { return byte == block.mark; });
}

/// Blocks of many sizes, in an order like that of a step: most are freed in the reverse order of
/// allocation.
void simulate_step(MemoryPool& pool, int seed) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  for (int i = 0; i < 60; ++i) {
    blocks.push_back(take(pool, 40'000 + random() % (2 * kMiB)));
    if (i % 3 == 2) {
      ASSERT_TRUE(pool.give_back(blocks[blocks.size() - 2].data));
      blocks.erase(blocks.end() - 2);
    }
  }
  while (!blocks.empty()) {
    ASSERT_TRUE(pool.give_back(blocks.back().data));
    blocks.pop_back();
  }
}

TEST(MemoryPool, BlocksNeverOverlapAndAreAligned) {
  MemoryPool pool(256 * kMiB);
  std::mt19937 random(3);
  std::vector<Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (blocks.size() < 40 && random() % 2 == 0) {
      blocks.push_back(take(pool,
                            MemoryPool::kSmallest + random() % (i % 50 == 0 ? 8 * kMiB : 100'000),
                            static_cast<char>(i)));
      ASSERT_NE(blocks.back().data, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(blocks.back().data) % 64, 0u);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      ASSERT_TRUE(is_intact(blocks.back()));
      ASSERT_TRUE(pool.give_back(blocks.back().data));
      blocks.pop_back();
    }
  }
}

TEST(MemoryPool, TheSecondStepFindsTheMemoryOfTheFirst) {
  MemoryPool pool(256 * kMiB);
  simulate_step(pool, 1);
  const MemoryPool::Figures first = pool.figures();
  EXPECT_EQ(first.in_use, 0);
  EXPECT_GE(first.resident, first.peak);
  simulate_step(pool, 1);
  EXPECT_EQ(pool.figures().resident, first.resident);
  EXPECT_EQ(pool.figures().peak, first.peak);
}

TEST(MemoryPool, FreeNeighboursBecomeOne) {
  MemoryPool pool(64 * kMiB);
  std::vector<Block> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back(take(pool, 2 * kMiB));
  EXPECT_EQ(pool.take(40 * kMiB), nullptr);
  for (int i = 0; i < 30; i += 2) EXPECT_TRUE(pool.give_back(blocks[i].data));
  EXPECT_EQ(pool.take(40 * kMiB), nullptr);
  for (int i = 1; i < 30; i += 2) EXPECT_TRUE(pool.give_back(blocks[i].data));
  EXPECT_NE(pool.take(60 * kMiB), nullptr);
}

TEST(MemoryPool, WhatItKeepsIsBoundedByWhatWasInUse) {
  MemoryPool pool(2048 * kMiB);
  const int64_t before = resident_bytes();
  std::vector<Block> blocks;
  // holes of 3 MiB, too small for blocks of 8
  for (int i = 0; i < 80; ++i) blocks.push_back(take(pool, 3 * kMiB));
  for (int i = 0; i < 80; ++i)
    if (i % 4 != 0) {
      EXPECT_TRUE(pool.give_back(blocks[i].data));
    }
  for (int i = 0; i < 20; ++i) take(pool, 8 * kMiB);
  const MemoryPool::Figures figures = pool.figures();
  const auto allowed = static_cast<int64_t>(figures.peak * (1 + MemoryPool::kSlack) + 8 * kMiB);
  EXPECT_LE(figures.resident, allowed);
  EXPECT_LE(resident_bytes() - before, figures.resident + static_cast<int64_t>(4 * kMiB));
}

TEST(MemoryPool, ForgetsAPeakThatDoesNotComeAgain) {
  MemoryPool pool(512 * kMiB);
  const Block block = take(pool, 200 * kMiB);
  EXPECT_TRUE(pool.give_back(block.data));
  pool.reset_peak();
  EXPECT_GE(pool.figures().resident, int64_t{200} << 20);  // the next step may need it
  pool.reset_peak();
  EXPECT_LE(pool.figures().resident, int64_t{10} << 20);
  EXPECT_EQ(pool.figures().peak, 0);
}

TEST(MemoryPool, LeavesToOthersWhatIsTooSmallOrTooLargeOrTheirs) {
  MemoryPool pool(8 * kMiB);
  EXPECT_EQ(pool.take(MemoryPool::kSmallest - 1), nullptr);
  EXPECT_NE(pool.take(MemoryPool::kSmallest), nullptr);
  EXPECT_EQ(pool.take(9 * kMiB), nullptr);
  EXPECT_EQ(pool.take(SIZE_MAX - 3), nullptr);
  int theirs = 0;
  EXPECT_FALSE(pool.give_back(&theirs));
  EXPECT_FALSE(pool.give_back(nullptr));
}

TEST(MemoryPool, WithoutAddressesGivesNothing) {
  MemoryPool pool(SIZE_MAX / 4);
  EXPECT_EQ(pool.take(kMiB), nullptr);
  int theirs = 0;
  EXPECT_FALSE(pool.give_back(&theirs));
}

}  // namespace
}  // namespace titan::cpu
