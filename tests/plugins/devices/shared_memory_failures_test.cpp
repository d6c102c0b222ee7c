// The shared-memory transport when ranks end, are late or cannot share memory.
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <titan/error.h>

#include "plugins/devices/cpu/shared_memory/operation.h"
#include "shared_memory_ranks.h"

namespace titan::cpu {
namespace {

/// The error of waiting for `work`.
std::string error_of(const std::shared_ptr<dist::Work>& work) {
  try {
    finish(work);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

TEST(SharedMemoryFailures, ARankThatDoesNotComeIsNamedWhenTheTimeIsOver) {
  connected(3, true, [](const Connected& ranks) {
    if (ranks.rank() != 1) {
      ranks.shared->set_timeout(milliseconds(1500));
      const std::string error = error_of(ranks.shared->barrier());
      EXPECT_EQ(error,
                "it was aborted: timed out after 1.5 s: rank 1 of the group did not take part");
      EXPECT_THROW(ranks.shared->barrier(), std::runtime_error);  // it stays aborted
    }
  });
}

TEST(SharedMemoryFailures, ARankThatEndsIsNoticedByAllOthers) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::latch both_have_noticed(2);
  as_ranks(3, [&](int rank) {
    auto backend = share_memory(endpoint(*store, "g", rank, 3));
    const Tensor word = at::full({1000}, rank, at::kInt);
    if (rank == 2) {
      finish(backend->barrier());
      return;
    }
    finish(backend->barrier());
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(error_of(backend->all_reduce(word, Reduce::sum)),
              "it was aborted: rank 2 of the group has ended");
    EXPECT_LT(std::chrono::steady_clock::now() - start, minutes(2));  // the timeout is five
    both_have_noticed.arrive_and_wait();
  });
}

/// A ring in this process with a futex, and its two ends.
struct Ring {
  alignas(kLine) std::array<std::byte, RingPlace::bytes(1, 4096)> memory{};
  Futex futex{};
  SendChannel send{
      .ring = RingWriter(RingPlace::at(memory.data(), 1, 4096)), .ranks = {0}, .futexes = {&futex}};
  ReceiveChannel receive{
      .ring = RingReader(RingPlace::at(memory.data(), 1, 4096), 0), .rank = 0, .futex = &futex};
};

TEST(SharedMemoryOperations, WaitForNobodyWhoseBytesAreHere) {
  Ring from_one, from_two;
  from_one.receive.rank = 1;
  from_two.receive.rank = 2;
  const std::array<std::byte, 640> bytes{};
  SendMessage one(from_one.send, bytes.data(), bytes.size());
  EXPECT_TRUE(one.advance());
  uint64_t used = 0;
  FanInReduce fan_in({&from_one.receive, &from_two.receive}, 3, bytes.size(),
                     [&](uint64_t, uint64_t count, const std::byte* const*) { used += count; });
  while (fan_in.advance()) {
  }
  EXPECT_FALSE(fan_in.waits_for(1));  // rank one may end now
  EXPECT_TRUE(fan_in.waits_for(2));
  SendMessage two(from_two.send, bytes.data(), bytes.size());
  EXPECT_TRUE(two.advance());
  while (fan_in.advance()) {
  }
  EXPECT_TRUE(fan_in.is_done());
  EXPECT_EQ(used, bytes.size());
}

TEST(SharedMemoryFailures, WhatARankSentBeforeItEndedIsReceived) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::atomic<bool> has_ended = false;
  as_ranks(2, [&](int rank) {
    auto backend = share_memory(endpoint(*store, "g", rank, 2));
    const Tensor word = at::full({1000}, rank, at::kInt);
    if (rank == 1) {
      backend->send(word, 0, 5)->wait();
      backend.reset();
      has_ended = true;
      return;
    }
    while (!has_ended) std::this_thread::yield();
    finish(backend->receive(word, 1, 5));
    EXPECT_TRUE(word.eq(1).all().item<bool>());
    EXPECT_EQ(error_of(backend->receive(word, 1, 5)),
              "it was aborted: rank 1 of the group has ended");
  });
}

TEST(SharedMemoryFailures, AGroupThatIsGivenUpEndsItsWaits) {
  connected(2, true, [](const Connected& ranks) {
    if (ranks.rank() == 1) return;
    const auto work = ranks.shared->barrier();
    std::thread other([&] { ranks.shared->abort("rank 7 has left"); });
    EXPECT_EQ(error_of(work), "it was aborted: rank 7 has left");
    other.join();
    try {
      ranks.shared->barrier();
      FAIL() << "started";
    } catch (const std::exception& e) {
      EXPECT_STREQ(e.what(), "the group was aborted: rank 7 has left");
    }
  });
}

TEST(SharedMemoryFailures, RanksThatDoDifferentThingsAreTold) {
  connected(2, true, [](const Connected& ranks) {
    const Tensor x = at::zeros({ranks.rank() == 0 ? 100 : 200}, at::kInt);
    EXPECT_EQ(error_of(ranks.shared->broadcast(x, 1))
                      .find("it was aborted: rank 1 of the group sent 800 "
                            "bytes where 400 were expected") == 0,
              ranks.rank() == 0);
  });
}

/// Entries of segments in this process's memory map and open files.
int64_t num_traces_of_segments() {
  int64_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    count += line.find("titan-ranks") != std::string::npos;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own descriptor is gone
    count += std::filesystem::read_symlink(entry, gone).string().find("titan-ranks") !=
             std::string::npos;
  }
  return count;
}

TEST(SharedMemorySegments, AreMappedWhileTheGroupLivesAndGoneAfterIt) {
  const int64_t before = num_traces_of_segments();
  connected(3, true, [&](const Connected& ranks) {
    finish(ranks.gloo->barrier());
    EXPECT_EQ(num_traces_of_segments(), before + 9);  // each rank maps three, and keeps none open
    finish(ranks.gloo->barrier());
  });
  EXPECT_EQ(num_traces_of_segments(), before);
}

TEST(Transport, IsGlooWhereOneRankCannotShareMemory) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  as_ranks(2, [&](int rank) {
    const dist::Endpoint here = endpoint(*store, "g", rank, 2);
    std::shared_ptr<Backend> backend;
    if (rank == 0) {
      backend = Connector(Transport::automatic).connect(here);
    } else {  // a rank on another machine
      const std::string offer = "name boot of another machine";
      store->set("g/shared_memory/offer/1", std::vector<uint8_t>(offer.begin(), offer.end()));
      backend = connect_gloo(here);
    }
    const Tensor x = at::full({3}, rank + 1, at::kInt);
    finish(backend->all_reduce(x, Reduce::sum));
    EXPECT_TRUE(x.eq(3).all().item<bool>());
  });
}

TEST(Transport, ThatIsAskedForAndImpossibleIsAnErrorThatSaysWhy) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const std::string offer = "no memfd_create: Operation not permitted";
  store->set("g/shared_memory/offer/1", std::vector<uint8_t>(offer.begin(), offer.end()));
  try {
    share_memory(endpoint(*store, "g", 0, 2));
    FAIL() << "connected";
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_EQ(e.kind(), ErrorKind::distributed);
    EXPECT_NE(text.find("device.transport"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 of the group: memfd_create: Operation not permitted"),
              std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace titan::cpu
