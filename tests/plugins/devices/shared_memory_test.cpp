// The shared-memory transport compared with gloo: ranks on threads are connected by both.
#include <cstring>
#include <functional>
#include <latch>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <titan/error.h>

#include "shared_memory_ranks.h"

namespace titan::cpu {
namespace {

/// A rank's values: many magnitudes, and special values that reductions often get wrong.
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

/// NaNs of different bits count as equal: the bits depend on the instruction that made them.
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
    // rows to and from each rank: some ranks get none, others more than the rings hold
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
    // the second alone exceeds a ring
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
    for (int i = 0; i < 4; ++i) {  // together they far exceed the rings
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

/// Rank 0 starts an operation, and waits for it only after rank 1 has finished its own.
void go_on_alone(
    const Connected& ranks,
    const std::function<std::shared_ptr<dist::Work>(Backend& backend, int rank)>& start) {
  static std::atomic<bool> other_is_done;
  if (ranks.rank() == 0) other_is_done = false;
  finish(ranks.shared->barrier());
  const auto work = start(*ranks.shared, ranks.rank());
  if (ranks.rank() == 0)
    while (!other_is_done) std::this_thread::yield();
  finish(work);
  if (ranks.rank() == 1) other_is_done = true;
}

constexpr int64_t kMoreThanARing = 3'000'000;  // of four bytes

TEST(SharedMemoryOperations, GoOnWhileARankThatHasStartedThemDoesOtherThings) {
  connected(2, false, [](const Connected& ranks) {
    const Tensor sum = at::full({kMoreThanARing}, ranks.rank() + 1, at::kFloat);
    go_on_alone(ranks, [&](Backend& backend, int) { return backend.all_reduce(sum, Reduce::sum); });
    EXPECT_TRUE(sum.eq(3).all().item<bool>());
  });
}

TEST(SharedMemoryOperations, GoOnWhereTheRankThatDoesOtherThingsHasSentAll) {
  connected(2, false, [](const Connected& ranks) {
    const int64_t received = ranks.rank() == 0 ? kMoreThanARing : 0;
    const Tensor in = at::full({kMoreThanARing - received}, 7, at::kInt);
    const Tensor out = at::zeros({received}, at::kInt);
    go_on_alone(ranks, [&](Backend& backend, int rank) {
      return backend.all_to_all(
          out, in,
          rank == 0 ? dist::RowSplits{.sent = {0, 0}, .received = {0, received}}
                    : dist::RowSplits{.sent = {kMoreThanARing, 0}, .received = {0, 0}});
    });
    EXPECT_TRUE(out.eq(7).all().item<bool>());
  });
}

TEST(SharedMemoryMessages, GoOnWhileTheRankThatExpectsThemDoesOtherThings) {
  connected(2, false, [](const Connected& ranks) {
    const Tensor message = at::full({kMoreThanARing}, ranks.rank(), at::kInt);
    go_on_alone(ranks, [&](Backend& backend, int rank) {
      return rank == 0 ? backend.receive(message, 1, 5) : backend.send(message, 0, 5);
    });
    EXPECT_TRUE(message.eq(1).all().item<bool>());
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

}  // namespace
}  // namespace titan::cpu
