// The transport through shared memory, judged by gloo: ranks are threads that are connected by
// both.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <titan/dist/endpoint.h>
#include <titan/error.h>

#include "plugins/devices/common/gloo_backend.h"
#include "plugins/devices/cpu/shared_memory/operation.h"
#include "plugins/devices/cpu/transport.h"

namespace titan::cpu {
namespace {

using at::Tensor;
using dist::Backend;
using dist::Reduce;
using std::chrono::milliseconds;
using std::chrono::minutes;

/// Runs `body` as each rank, on a thread of its own; throws what the first of them threw.
void as_ranks(int size, const std::function<void(int rank)>& body) {
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        body(rank);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

struct Connected {
  std::shared_ptr<Backend> shared, gloo;
  int rank() const { return shared->rank(); }
  int size() const { return shared->size(); }
};

dist::Endpoint endpoint(c10d::Store& store, const std::string& name, int rank, int size) {
  return {.store = store,
          .name = name,
          .rank = rank,
          .size = size,
          .timeout = minutes(5),
          .is_one_host = true};
}

std::shared_ptr<Backend> share_memory(const dist::Endpoint& here) {
  return Connector(Transport::shared_memory).connect(here);
}

/// Ranks that share memory; `judged`: with gloo beside it.
void connected(int size, bool judged, const std::function<void(const Connected&)>& body) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  as_ranks(size, [&](int rank) {
    Connected ranks;
    ranks.shared = share_memory(endpoint(*store, "g", rank, size));
    if (judged) ranks.gloo = connect_gloo(endpoint(*store, "judge", rank, size));
    body(ranks);
    if (judged) ranks.gloo->barrier()->wait();  // nobody leaves while others still talk
  });
}

void finish(const std::shared_ptr<dist::Work>& work) {
  if (work) work->wait();
}

/// What a rank holds: values of many sizes, and those that reductions like to get wrong.
Tensor values(int64_t count, c10::ScalarType type, int rank) {
  const Tensor i = at::arange(count, at::kLong);
  const Tensor mixed = (i * 7919 + (rank + 1) * 104729).remainder(1009) - 504;
  if (!at::isFloatingType(type)) return mixed.to(type);
  const Tensor scale = at::pow(10.0, (i * 31 + rank * 17).remainder(9).to(at::kDouble) - 4);
  Tensor x = (mixed.to(at::kDouble) * scale / 3).to(type);
  const auto put = [&](int64_t at, double value) {
    if (at < count) x[at].fill_(value);
  };
  put(11 + rank % 2, std::numeric_limits<double>::quiet_NaN());
  put(13, rank % 2 ? 0.0 : -0.0);
  put(14, -0.0);
  put(15, std::numeric_limits<double>::infinity());
  return x;
}

/// Any NaN is as good as another: which bits one has depends on the instruction that made it.
::testing::AssertionResult same_bits(const Tensor& shared, const Tensor& gloo) {
  const Tensor a = shared.masked_fill(shared.isnan(), 0), b = gloo.masked_fill(gloo.isnan(), 0);
  if (shared.isnan().equal(gloo.isnan()) &&
      std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0)
    return ::testing::AssertionSuccess();
  const Tensor other =
      shared.ne(gloo).logical_and(shared.isnan().logical_and(gloo.isnan()).logical_not()).nonzero();
  auto failure = ::testing::AssertionFailure();
  if (other.numel() == 0) return failure << "the sign of a zero";
  const auto first = other[0].item<int64_t>();
  return failure << other.size(0) << " elements, the first " << first << ": "
                 << shared[first].item<double>() << " and " << gloo[first].item<double>();
}

const std::vector<c10::ScalarType> kTypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                                             at::kChar,  at::kByte,   at::kInt,  at::kLong};

class SharedMemory : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, SharedMemory, ::testing::Values(2, 3, 4, 5, 8));

TEST_P(SharedMemory, AllReducesHaveTheBitsOfGloo) {
  connected(GetParam(), true, [](const Connected& ranks) {
    for (const auto type : kTypes)
      for (const auto reduce : {Reduce::sum, Reduce::max, Reduce::min})
        for (const int64_t count : {1, 3, 33, 20011}) {
          Tensor shared = values(count, type, ranks.rank()), gloo = shared.clone();
          finish(ranks.shared->all_reduce(shared, reduce));
          finish(ranks.gloo->all_reduce(gloo, reduce));
          EXPECT_TRUE(same_bits(shared, gloo))
              << type << ", operation " << static_cast<int>(reduce) << ", " << count
              << " elements, rank " << ranks.rank();
        }
  });
}

TEST_P(SharedMemory, LargeAllReducesHaveTheBitsOfGloo) {
  connected(GetParam(), true, [](const Connected& ranks) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      Tensor shared = values(1'300'007, type, ranks.rank()), gloo = shared.clone();
      finish(ranks.shared->all_reduce(shared, Reduce::sum));
      finish(ranks.gloo->all_reduce(gloo, Reduce::sum));
      EXPECT_TRUE(same_bits(shared, gloo)) << type << ", rank " << ranks.rank();
    }
  });
}

TEST_P(SharedMemory, ReduceScattersHaveTheBitsOfGloo) {
  connected(GetParam(), true, [](const Connected& ranks) {
    for (const auto type : kTypes)
      for (const int64_t count : {1, 3, 31, 1003, 300'007}) {
        if (count > 2000 && type != at::kFloat && type != at::kBFloat16) continue;
        const Tensor in = values(count * ranks.size(), type, ranks.rank());
        const Tensor shared = at::zeros({count}, type), gloo = at::zeros({count}, type);
        finish(ranks.shared->reduce_scatter(shared, in, Reduce::sum));
        finish(ranks.gloo->reduce_scatter(gloo, in, Reduce::sum));
        EXPECT_TRUE(same_bits(shared, gloo))
            << type << ", " << count << " elements, rank " << ranks.rank();
      }
  });
}

TEST_P(SharedMemory, WhatIsOnlyMovedArrivesAsOverGloo) {
  connected(GetParam(), true, [](const Connected& ranks) {
    const int rank = ranks.rank(), size = ranks.size();
    // rows to and from each rank: none to some, more than the rings hold to others
    dist::RowSplits splits;
    for (int other = 0; other < size; ++other) {
      splits.sent.push_back(((rank + other) % 3) * 1000 * (rank + 1));
      splits.received.push_back(((rank + other) % 3) * 1000 * (other + 1));
    }
    const auto total = [](const std::vector<int64_t>& rows) {
      int64_t sum = 0;
      for (const int64_t n : rows) sum += n;
      return sum;
    };
    for (Backend* backend : {ranks.shared.get(), ranks.gloo.get()}) {
      const std::string which = backend == ranks.gloo.get() ? "gloo" : "shared memory";
      for (const int64_t count : {1, 600'001}) {
        const Tensor in = at::full({count}, rank + 1, at::kInt);
        const Tensor out = at::zeros({size, count}, at::kInt);
        finish(backend->all_gather(out, in));
        for (int r = 0; r < size; ++r) EXPECT_TRUE(out[r].eq(r + 1).all().item<bool>()) << which;
        finish(backend->all_gather(out, out[rank]));  // in place
        for (int r = 0; r < size; ++r) EXPECT_TRUE(out[r].eq(r + 1).all().item<bool>()) << which;

        const Tensor word = at::full({count}, rank, at::kInt);
        finish(backend->broadcast(word, size - 1));
        EXPECT_TRUE(word.eq(size - 1).all().item<bool>()) << which;

        const Tensor asked =
            at::full({size, count}, rank * 100, at::kInt) + at::arange(size, at::kInt).unsqueeze(1);
        const Tensor answered = at::zeros({size, count}, at::kInt);
        finish(backend->all_to_all(answered, asked, {}));
        for (int r = 0; r < size; ++r)
          EXPECT_TRUE(answered[r].eq(r * 100 + rank).all().item<bool>()) << which;
      }
      const Tensor rows = at::full({total(splits.sent), 50}, rank, at::kFloat);
      const Tensor came = at::zeros({total(splits.received), 50}, at::kFloat);
      finish(backend->all_to_all(came, rows, splits));
      const std::vector<Tensor> by_rank = came.split_with_sizes(splits.received);
      for (int r = 0; r < size; ++r)
        EXPECT_TRUE(by_rank[static_cast<size_t>(r)].eq(r).all().item<bool>()) << which;
      finish(backend->barrier());
    }
  });
}

TEST(SharedMemoryMessages, AreFoundByTheirTagsInAnyOrder) {
  connected(2, false, [](const Connected& ranks) {
    const int peer = 1 - ranks.rank();
    // the second alone is more than a ring holds
    const std::vector<int64_t> counts = {10, 3'000'000, 1000, 0, 10};
    const std::vector<int> tags = {4, 7, 1, 9, 4};
    std::vector<std::shared_ptr<dist::Work>> sent;
    for (size_t i = 0; i < counts.size(); ++i)
      sent.push_back(ranks.shared->send(at::full({counts[i]}, static_cast<int64_t>(i), at::kInt),
                                        peer, tags[i]));
    std::vector<Tensor> received;
    for (const size_t i : {size_t{2}, size_t{0}, size_t{3}, size_t{4}, size_t{1}}) {
      const Tensor place = at::full({counts[i]}, -1, at::kInt);
      finish(ranks.shared->receive(place, peer, tags[i]));
      EXPECT_TRUE(place.eq(static_cast<int64_t>(i)).all().item<bool>()) << i;
    }
    for (const auto& work : sent) finish(work);
  });
}

TEST(SharedMemoryOperations, MayBeWaitedForInAnyOrder) {
  connected(3, false, [](const Connected& ranks) {
    std::vector<Tensor> sums, gathered;
    std::vector<std::shared_ptr<dist::Work>> works;
    for (int i = 0; i < 4; ++i) {  // together far more than the rings hold
      sums.push_back(at::full({400'000}, ranks.rank() + i, at::kFloat));
      works.push_back(ranks.shared->all_reduce(sums.back(), Reduce::sum));
      gathered.push_back(at::zeros({3, 200'000}, at::kInt));
      works.push_back(ranks.shared->all_gather(
          gathered.back(), at::full({200'000}, ranks.rank() * 10 + i, at::kInt)));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) finish(*work);
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(sums[static_cast<size_t>(i)].eq(3 + 3 * i).all().item<bool>());
      for (int r = 0; r < 3; ++r)
        EXPECT_TRUE(gathered[static_cast<size_t>(i)][r].eq(r * 10 + i).all().item<bool>());
    }
  });
}

TEST(SharedMemoryOperations, GoOnWhileARankThatHasStartedThemDoesOtherThings) {
  connected(2, false, [](const Connected& ranks) {
    static std::atomic<bool> other_is_done;
    if (ranks.rank() == 0) other_is_done = false;
    finish(ranks.shared->barrier());
    const Tensor sum = at::full({3'000'000}, ranks.rank() + 1, at::kFloat);
    const auto work = ranks.shared->all_reduce(sum, Reduce::sum);
    if (ranks.rank() == 0) {
      while (!other_is_done) std::this_thread::yield();  // does not wait for its work meanwhile
      finish(work);
    } else {
      finish(work);
      other_is_done = true;
    }
    EXPECT_TRUE(sum.eq(3).all().item<bool>());
  });
}

TEST(SharedMemoryTypes, AreRefusedWhereGlooRefusesThem) {
  connected(2, true, [](const Connected& ranks) {
    for (const auto type : {at::kShort, at::kComplexFloat, at::kFloat8_e4m3fn, at::kBool}) {
      const auto refused = [&](Backend& backend, bool reduces) {
        const Tensor x = at::zeros({4}, type);
        try {
          finish(reduces ? backend.all_reduce(x, Reduce::sum) : backend.broadcast(x, 0));
          return std::string("taken");
        } catch (const std::exception& e) {
          const std::string text = e.what();
          return text.substr(0, text.find('\n'));
        }
      };
      for (const bool reduces : {true, false})
        EXPECT_EQ(refused(*ranks.shared, reduces), refused(*ranks.gloo, reduces)) << type;
      EXPECT_EQ(refused(*ranks.shared, true),
                type == at::kBool || c10::isComplexType(type) ? "taken" : "Invalid scalar type");
    }
  });
}

/// What waiting for `work` throws.
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
                "it was given up: timed out after 1.5 s: rank 1 of the group did not take part");
      EXPECT_THROW(ranks.shared->barrier(), std::runtime_error);  // it stays given up
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
              "it was given up: rank 2 of the group has ended");
    EXPECT_LT(std::chrono::steady_clock::now() - start, minutes(2));  // not its timeout of five
    both_have_noticed.arrive_and_wait();
  });
}

/// A ring of this process with a bell, and both of its ends.
struct Ring {
  alignas(kLine) std::array<std::byte, RingPlace::bytes(1, 4096)> memory{};
  Bell bell{};
  SendLane send{
      .ring = RingWriter(RingPlace::at(memory.data(), 1, 4096)), .ranks = {0}, .bells = {&bell}};
  ReceiveLane receive{
      .ring = RingReader(RingPlace::at(memory.data(), 1, 4096), 0), .rank = 0, .bell = &bell};
};

TEST(SharedMemoryOperations, WaitForNobodyWhoseBytesAreHere) {
  Ring from_one, from_two;
  from_one.receive.rank = 1;
  from_two.receive.rank = 2;
  const std::array<std::byte, 640> bytes{};
  Outgoing one(from_one.send, bytes.data(), bytes.size());
  EXPECT_TRUE(one.advance());
  uint64_t used = 0;
  Joint joint({&from_one.receive, &from_two.receive}, 3, bytes.size(),
              [&](uint64_t, uint64_t count, const std::byte* const*) { used += count; });
  while (joint.advance()) {
  }
  EXPECT_FALSE(joint.waits_for(1));  // it may end
  EXPECT_TRUE(joint.waits_for(2));
  Outgoing two(from_two.send, bytes.data(), bytes.size());
  EXPECT_TRUE(two.advance());
  while (joint.advance()) {
  }
  EXPECT_TRUE(joint.is_done());
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
              "it was given up: rank 1 of the group has ended");
  });
}

TEST(SharedMemoryFailures, AGroupThatIsGivenUpEndsItsWaits) {
  connected(2, true, [](const Connected& ranks) {
    if (ranks.rank() == 1) return;
    const auto work = ranks.shared->barrier();
    std::thread other([&] { ranks.shared->abort("rank 7 has left"); });
    EXPECT_EQ(error_of(work), "it was given up: rank 7 has left");
    other.join();
    try {
      ranks.shared->barrier();
      FAIL() << "started";
    } catch (const std::exception& e) {
      EXPECT_STREQ(e.what(), "the group was given up: rank 7 has left");
    }
  });
}

TEST(SharedMemoryFailures, RanksThatDoDifferentThingsAreTold) {
  connected(2, true, [](const Connected& ranks) {
    const Tensor x = at::zeros({ranks.rank() == 0 ? 100 : 200}, at::kInt);
    EXPECT_EQ(error_of(ranks.shared->broadcast(x, 1))
                      .find("it was given up: rank 1 of the group sent 800 "
                            "bytes where 400 were expected") == 0,
              ranks.rank() == 0);
  });
}

/// Lines of this process's memory map and open files that are of segments.
int64_t num_traces_of_segments() {
  int64_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    count += line.find("titan-ranks") != std::string::npos;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // that of the iterator itself
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
    } else {  // a rank of another machine
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
