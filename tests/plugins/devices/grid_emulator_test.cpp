// The emulator detects defects of kernels. Each test contains one defect.
#include "plugins/devices/cuda/emulator/emulator.h"

#include <gtest/gtest.h>

#include "plugins/devices/cuda/kernels/pieces.h"

namespace titan::cuda {
namespace {

using emulator::Defect;
using emulator::GridError;
using emulator::Order;
using emulator::ScopedOrder;
using grid::Span;

/// Runs `body` as a kernel of these sizes. Returns the defect that ended it and its message.
template <class Body>
std::optional<GridError> error_in(int64_t blocks, int threads, const Body& body) {
  try {
    emulator::run(blocks, threads, body);
  } catch (const GridError& error) {
    return error;
  }
  return std::nullopt;
}

template <class Body>
void expect_defect(Defect defect, const Body& body, int64_t blocks = 1, int threads = 64) {
  for (const Order order : {Order::forward, Order::backward, Order::shuffled}) {
    const ScopedOrder scope(order);
    const auto error = error_in(blocks, threads, body);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->defect(), defect) << error->what();
  }
}

template <class Body>
void expect_none(const Body& body, int64_t blocks = 1, int threads = 64) {
  for (const Order order : {Order::forward, Order::backward, Order::shuffled}) {
    const ScopedOrder scope(order);
    const auto error = error_in(blocks, threads, body);
    EXPECT_FALSE(error.has_value()) << error->what();
  }
}

struct alignas(16) Numbers {
  float values[256] = {};
  Span<float> span(int64_t size = 256) { return {values, size}; }
};

TEST(GridEmulator, RunsEveryThreadOfEveryBlockOnce) {
  for (const Order order : {Order::forward, Order::backward, Order::shuffled}) {
    const ScopedOrder scope(order);
    std::vector<int> runs(3 * 64);
    emulator::run(3, 64, [&] {
      EXPECT_EQ(grid::num_blocks(), 3);
      ++runs[static_cast<size_t>(grid::block() * 64 + grid::thread())];
    });
    EXPECT_EQ(runs, std::vector<int>(3 * 64, 1));
  }
}

TEST(GridEmulator, FindsAccessesOutsideOfGlobalMemory) {
  Numbers numbers;
  expect_none([&] { numbers.span(64).store(grid::thread(), 1); });
  expect_defect(Defect::global_bounds, [&] { numbers.span(63).store(grid::thread(), 1); });
  expect_defect(Defect::global_bounds, [&] { numbers.span().load(grid::thread() - 1); });
  // the last piece exceeds the end
  expect_none([&] { numbers.span(256).piece<4>(4 * grid::thread()); });
  expect_defect(Defect::global_bounds, [&] { numbers.span(255).piece<4>(4 * grid::thread()); });
}

TEST(GridEmulator, FindsAccessesThatAreNotAligned) {
  Numbers numbers;
  expect_defect(Defect::global_alignment,
                [&] { numbers.span().piece<4>(4 * (grid::thread() % 8) + 2); });
  expect_none([&] { numbers.span().piece<2>(4 * (grid::thread() % 8) + 2); });
  const Span<float> shifted{numbers.values + 1, 255};
  expect_defect(Defect::global_alignment, [&] { shifted.piece<4>(0); });
}

TEST(GridEmulator, FindsThreadsThatMeetInGlobalMemory) {
  Numbers numbers;
  expect_defect(Defect::global_race, [&] { numbers.span().store(0, 1); });
  expect_defect(Defect::global_race, [&] {
    const float value = numbers.span().load((grid::thread() + 1) % 64);
    numbers.span().store(grid::thread(), value);
  });
  // a barrier orders the threads of a block, but not two blocks
  const auto behind_a_barrier = [&] {
    const float value = numbers.span().load((grid::thread() + 1) % 64);
    grid::sync_block();
    numbers.span().store(grid::thread(), value);
  };
  expect_none(behind_a_barrier);
  expect_defect(Defect::global_race, behind_a_barrier, /*blocks=*/2);
  // a thread may read and write its own element
  expect_none(
      [&] {
        const int64_t i = grid::block() * 64 + grid::thread();
        numbers.span().store(i, numbers.span().load(i) + 1);
      },
      /*blocks=*/4);
}

TEST(GridEmulator, FindsAccessesOutsideOfSharedMemory) {
  expect_defect(Defect::shared_bounds, [] {
    TITAN_SHARED(float, values, 63);
    values.store(grid::thread(), 1);
  });
  expect_defect(Defect::shared_bounds, [] {
    TITAN_SHARED(float, values, 64);
    values.store(grid::thread() - 1, 1);
  });
}

TEST(GridEmulator, FindsReadsOfSharedMemoryThatNobodyWrote) {
  expect_defect(Defect::shared_unwritten, [] {
    TITAN_SHARED(float, values, 64);
    if (grid::thread() < 63) values.store(grid::thread(), 1);
    grid::sync_block();
    values.load(grid::thread());
  });
  // shared memory of an earlier block is not initialised
  expect_defect(
      Defect::shared_unwritten,
      [] {
        TITAN_SHARED(float, values, 64);
        if (grid::block() == 0) values.store(grid::thread(), 1);
        grid::sync_block();
        values.load(grid::thread());
      },
      /*blocks=*/2);
}

TEST(GridEmulator, FindsAMissingBarrier) {
  // written, then read by another thread
  expect_none([] {
    TITAN_SHARED(float, values, 64);
    values.store(grid::thread(), 1);
    grid::sync_block();
    values.load(63 - grid::thread());
  });
  const auto without = [] {
    TITAN_SHARED(float, values, 64);
    values.store(grid::thread(), 1);
    grid::sync_block();
    values.load(63 - grid::thread());
    values.store(grid::thread(), 2);  // another thread may not have read it yet
  };
  expect_defect(Defect::shared_race, without);
  // many readers, then the last reader writes
  expect_defect(Defect::shared_race, [] {
    TITAN_SHARED(float, value, 1);
    if (grid::thread() == 0) value.store(0, 1);
    grid::sync_block();
    value.load(0);
    if (grid::thread() == 63) value.store(0, 2);
  });
  expect_defect(Defect::shared_race, [] {
    TITAN_SHARED(float, value, 1);
    value.store(0, 1);
  });
}

// A block's sum reuses its scratch memory in the next row. Without the second barrier in over_block
// a fast warp overwrites values that a slow warp has not read.
TEST(GridEmulator, FindsTheSecondBarrierOfAReductionWhenItIsForgotten) {
  const auto sum_twice = [](bool forgetful) {
    TITAN_SHARED(float, scratch, 2);
    for (int time = 0; time < 2; ++time) {
      const float value = over_warp(1.0f, Add{});
      if (grid::lane() == 0) scratch.store(grid::warp(), value);
      grid::sync_block();
      EXPECT_EQ(scratch.load(0) + scratch.load(1), 64);
      if (!forgetful) grid::sync_block();
    }
  };
  expect_none([&] { sum_twice(false); });
  expect_defect(Defect::shared_race, [&] { sum_twice(true); });
}

TEST(GridEmulator, FindsBarriersThatNotAllThreadsReach) {
  expect_defect(Defect::barrier_divergence, [] {
    if (grid::thread() != 17) grid::sync_block();
  });
  expect_defect(Defect::barrier_divergence, [] {
    if (grid::thread() < 32)
      grid::sync_block();
    else
      grid::sync_block();
  });
}

TEST(GridEmulator, FindsShufflesThatNotAllLanesReach) {
  expect_defect(Defect::shuffle_divergence, [] {
    if (grid::thread() != 40) grid::shuffle_xor(1.0f, 1);
  });
  expect_defect(Defect::shuffle_divergence, [] {
    if (grid::lane() == 3) grid::sync_block();
    grid::shuffle_xor(1.0f, 1);
  });
  // different warps may diverge
  expect_none([] {
    if (grid::warp() == 1) grid::shuffle_xor(1.0f, 1);
  });
}

TEST(GridEmulator, ExchangesTheValuesOfLanes) {
  emulator::run(2, 96, [] {
    for (const int mask : {1, 2, 4, 8, 16, 31})
      EXPECT_EQ(grid::shuffle_xor(100 * grid::thread(), mask), 100 * (grid::thread() ^ mask));
  });
}

TEST(GridEmulator, EndsALaunchWhereARequirementFails) {
  expect_defect(Defect::requirement, [] { grid::require(grid::thread() < 50, "too many"); });
  const auto error = error_in(1, 64, [] { grid::require(grid::thread() < 50, "too many"); });
  EXPECT_STREQ(error->what(), "thread 50 of block 0: too many");
}

TEST(GridEmulator, NamesTheLineAndTheThreads) {
  Numbers numbers;
  const auto error = error_in(1, 32, [&] { numbers.span(7).load(grid::thread()); });
  EXPECT_NE(std::string(error->what()).find("grid_emulator_test.cpp:"), std::string::npos);
  EXPECT_NE(std::string(error->what()).find("thread 7 of block 0 reads elements 7 ... 7 of 7"),
            std::string::npos)
      << error->what();
}

// A launch after an error starts fresh.
TEST(GridEmulator, GoesOnAfterAnError) {
  Numbers numbers;
  expect_defect(Defect::global_bounds, [&] { numbers.span(7).load(grid::thread()); });
  expect_none([&] { numbers.span().store(grid::thread(), 1); });
}

}  // namespace
}  // namespace titan::cuda
