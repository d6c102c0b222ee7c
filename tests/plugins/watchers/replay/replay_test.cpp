// The parts of watcher 'replay': hashes, differences, who is to blame.
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "plugins/watchers/replay/copies.h"
#include "plugins/watchers/replay/exchange.h"
#include "plugins/watchers/replay/faults.h"
#include "plugins/watchers/replay/run_bits.h"

namespace titan::replay {
namespace {

TEST(ReplayHash, EveryBitOfEveryElementCounts) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble, at::kFloat8_e4m3fn}) {
    const at::Tensor tensor = at::rand({3, 5}).to(dtype);
    const int64_t before = hash_on_device(tensor).item<int64_t>();
    const int64_t before_in_memory = hash_in_memory(tensor);
    EXPECT_EQ(hash_on_device(tensor.clone()).item<int64_t>(), before);
    auto* bytes = static_cast<uint8_t*>(tensor.mutable_data_ptr());
    for (size_t i = 0; i < tensor.nbytes(); ++i)
      for (int bit = 0; bit < 8; ++bit) {
        bytes[i] ^= 1u << bit;
        EXPECT_NE(hash_on_device(tensor).item<int64_t>(), before)
            << dtype << " " << i << " " << bit;
        EXPECT_NE(hash_in_memory(tensor), before_in_memory);
        bytes[i] ^= 1u << bit;
      }
    EXPECT_EQ(hash_on_device(tensor).item<int64_t>(), before);
  }
}

TEST(ReplayHash, PositionsCount) {
  EXPECT_NE(hash_on_device(at::tensor({1.0, 2.0, 3.0})).item<int64_t>(),
            hash_on_device(at::tensor({2.0, 1.0, 3.0})).item<int64_t>());
}

TEST(ReplayDifference, NamesTheFirstOfEachKind) {
  const RunBits a{.outputs = {{7, 1}, {8, 2}}, .gradients = {{1, 10}, {0, 11}}, .loss = 5};
  EXPECT_FALSE(difference_of(a, a).is_any());
  RunBits b = a;
  b.outputs[1].hash = 3, b.gradients[0].hash = 0, b.gradients[1].hash = 0, b.loss = 6;
  const Difference found = difference_of(a, b);
  EXPECT_EQ(found.output, 8);
  EXPECT_EQ(found.gradient, 1);
  EXPECT_TRUE(found.is_of_loss);
}

TEST(ReplayFaults, TheRunThatDisagreesIsTheOddOne) {
  EXPECT_EQ(odd_of(true, true, true), Odd::none);
  EXPECT_EQ(odd_of(false, false, true), Odd::first);
  EXPECT_EQ(odd_of(false, true, false), Odd::second);
  EXPECT_EQ(odd_of(true, false, false), Odd::third);
  EXPECT_EQ(odd_of(false, false, false), Odd::all);
}

TEST(ReplayFaults, CountsStayWithTheDevice) {
  FaultCounts counts;
  counts.set_places({"a, cpu", "b, cpu"});
  counts.add({{}, {.odd = Odd::first}});
  EXPECT_EQ(counts.of(1), 1);
  EXPECT_EQ(counts.state().at("ranks"), Value::list())
      << "the step is neither committed nor skipped";
  counts.keep();
  counts.add({{.odd = Odd::second}, {.odd = Odd::first}});
  counts.keep();
  EXPECT_EQ(counts.of(0), 1);
  EXPECT_EQ(counts.of(1), 2);
  EXPECT_EQ(counts.total(), 3);

  FaultCounts resumed;
  resumed.restore(counts.state());
  resumed.set_places({"c, cpu", "b, cpu"});
  EXPECT_EQ(resumed.of(0), 0) << "another host";
  EXPECT_EQ(resumed.of(1), 2);
}

std::vector<Odd> odds(const std::vector<Exchanged>& of_ranks) {
  std::vector<Odd> found;
  for (const Finding& finding : blame(of_ranks)) found.push_back(finding.odd);
  return found;
}

TEST(ReplayExchange, TheRankThatDiffersFromBothNeighboursIsNamed) {
  const Difference equal, differs{.output = 3};
  EXPECT_EQ(odds({{1, differs}, {2, differs}, {3, equal}, {0, equal}}),
            (std::vector{Odd::none, Odd::of_neighbours, Odd::none, Odd::none}));
  EXPECT_EQ(odds({{1, differs}, {2, equal}, {3, equal}, {0, equal}}),
            (std::vector{Odd::of_pair, Odd::of_pair, Odd::none, Odd::none}));
  EXPECT_EQ(odds({{1, differs}, {0, differs}}), (std::vector{Odd::of_pair, Odd::of_pair}));
  // two groups of three ranks each, as with pipeline stages: 0 2 4 and 1 3 5
  EXPECT_EQ(
      odds({{2, equal}, {3, differs}, {4, equal}, {5, equal}, {0, equal}, {1, differs}}),
      (std::vector{Odd::none, Odd::of_neighbours, Odd::none, Odd::none, Odd::none, Odd::none}));
}

TEST(ReplayCopies, TheMinorityIsNamed) {
  const CopyReport equal = compare_copies({{{1, 5}, {3, 6}}, {{1, 5}, {0, 0}}});
  EXPECT_EQ(equal.num_copied, 1);
  EXPECT_EQ(equal.num_different, 0);
  const CopyReport three = compare_copies({{{1, 5}}, {{1, 4}}, {{1, 5}}});
  EXPECT_EQ(three.minority, (std::vector<int64_t>{1}));
  EXPECT_FALSE(three.has_tie);
  EXPECT_EQ(three.keys, (std::vector<int64_t>{1}));
  const CopyReport two = compare_copies({{{1, 5}}, {{1, 4}}});
  EXPECT_EQ(two.minority, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(two.has_tie);
}

}  // namespace
}  // namespace titan::replay
