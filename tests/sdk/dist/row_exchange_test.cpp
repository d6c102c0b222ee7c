// All-to-all with uneven splits, compared with one process that holds the rows of all ranks: values
// and gradients, ranks without rows, refusals, traffic, and the exchange of counts that gives the
// splits.
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <titan/dist/collectives.h>
#include <titan/error.h>
#include <titan/recompute.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::dist {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::run_ranks;

/// [r][p]: rows from r to p. Rank 2 sends and receives none, rank 0 keeps some, rank 3 sends all
/// its rows to one rank.
const std::vector<std::vector<int64_t>> kRowsOfRanks = {
    {2, 3, 0, 1}, {0, 1, 0, 4}, {0, 0, 0, 0}, {5, 0, 0, 0}};

RowSplits splits_of(int64_t size, int64_t rank) {
  RowSplits splits;
  for (int64_t peer = 0; peer < size; ++peer) {
    splits.sent.push_back(kRowsOfRanks[rank][peer]);
    splits.received.push_back(kRowsOfRanks[peer][rank]);
  }
  return splits;
}

int64_t sum_of(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

at::Tensor rows_of(int64_t size, int64_t rank, std::vector<int64_t> row, at::ScalarType dtype) {
  row.insert(row.begin(), sum_of(splits_of(size, rank).sent));
  const at::Tensor numbers = at::arange(c10::multiply_integers(row), at::kDouble);
  return (numbers % 61 + 64 * rank).reshape(row).to(dtype);
}

/// What `rank` receives, computed from the rows of all ranks in one process.
at::Tensor expected_at(int64_t rank, const std::vector<at::Tensor>& rows_of_ranks) {
  const auto size = static_cast<int64_t>(rows_of_ranks.size());
  std::vector<at::Tensor> parts;
  for (int64_t peer = 0; peer < size; ++peer)
    parts.push_back(rows_of_ranks[peer].split_with_sizes(splits_of(size, peer).sent)[rank]);
  return at::cat(parts);
}

TEST(RowExchange, GivesEachRankTheRowsThatAreMeantForIt) {
  const std::vector<std::vector<int64_t>> shapes = {{}, {3}, {2, 3}};
  for (const int64_t size : {2, 3, 4})
    run_ranks({.tp = size}, [&](const Mesh& mesh) {
      const Group& group = mesh.group("tp");
      for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong})
        for (const std::vector<int64_t>& shape : shapes) {
          std::vector<at::Tensor> all;
          for (int64_t rank = 0; rank < size; ++rank)
            all.push_back(rows_of(size, rank, shape, dtype));
          const at::Tensor got =
              all_to_all(all[group.rank()], splits_of(size, group.rank()), group);
          EXPECT_TRUE(at::equal(got, expected_at(group.rank(), all)))
              << dtype << ", rank " << group.rank() << " of " << size << ": " << got;
        }
    });
}

TEST(RowExchange, HasTheGradientsOfOneProcessThatHoldsAllRows) {
  for (const int64_t size : {2, 4})
    run_ranks({.tp = size}, [&](const Mesh& mesh) {
      const Group& group = mesh.group("tp");
      std::vector<at::Tensor> all;
      for (int64_t rank = 0; rank < size; ++rank)
        all.push_back(rows_of(size, rank, {3}, at::kDouble).set_requires_grad(true));
      at::Tensor loss = at::zeros({}, at::kDouble);
      for (int64_t rank = 0; rank < size; ++rank)
        loss = loss + (at::sin(expected_at(rank, all) * 0.3) * (rank + 1)).sum();
      loss.backward();

      const int rank = group.rank();
      const at::Tensor own = all[rank].detach().clone().set_requires_grad(true);
      const at::Tensor got = all_to_all(own, splits_of(size, rank), group);
      (at::sin(got * 0.3) * (rank + 1)).sum().backward();
      EXPECT_TRUE(at::equal(own.grad(), all[rank].grad())) << "rank " << rank << " of " << size;
    });
}

TEST(RowExchange, CountsTheBytesThatLeave) {
  run_ranks({.tp = 4}, [](const Mesh& mesh) {
    const Group& group = mesh.group("tp");
    const RowSplits splits = splits_of(4, group.rank());
    const at::Tensor rows = rows_of(4, group.rank(), {3}, at::kFloat);
    all_to_all(rows, splits, group);
    const int64_t num_leaving = sum_of(splits.sent) - splits.sent[group.rank()];
    EXPECT_EQ(mesh.recorder().traffic().at({"tp", "all_to_all"}).bytes, num_leaving * 3 * 4);
  });
}

TEST(RowExchange, RefusesSplitsThatAreNotThoseOfTheRows) {
  const Group group("ep", make_fake_backend(0, 2));
  const at::Tensor rows = at::zeros({4, 3});
  const auto exchange = [&](const RowSplits& splits) {
    group.all_to_all(at::empty({4, 3}), rows, splits).wait();
  };
  const auto refusal = [&](const RowSplits& splits) {
    return error_of([&] { exchange(splits); }).message();
  };
  exchange({.sent = {1, 3}, .received = {2, 2}});
  EXPECT_TRUE(
      holds(refusal({.sent = {1, 2}, .received = {2, 2}}),
            "all_to_all over group 'ep': this rank sends [1, 2] = 3 rows, but the tensor has 4"));
  EXPECT_TRUE(holds(refusal({.sent = {2, 2}, .received = {2, 3}}),
                    "this rank receives [2, 3] = 5 rows, but the tensor has 4"));
  EXPECT_TRUE(holds(refusal({.sent = {2, 1, 1}, .received = {2, 2}}),
                    "over group 'ep': 3 counts of rows that a rank sends, but there are 2 ranks"));
  EXPECT_TRUE(holds(refusal({.sent = {5, -1}, .received = {2, 2}}), "[5, -1] = 4 rows"));
}

TEST(RowExchange, TellsTheRanksHowManyRowsCome) {
  run_ranks({.tp = 4}, [](const Mesh& mesh) {
    const Group& group = mesh.group("tp");
    const int rank = group.rank();
    // two numbers for each rank: its count in kRowsOfRanks, and the rank's own number
    std::vector<int64_t> counts;
    for (int64_t peer = 0; peer < 4; ++peer) {
      counts.push_back(kRowsOfRanks[rank][peer]);
      counts.push_back(rank);
    }
    const RowCounts told = exchange_counts(at::tensor(counts, at::kLong), sum_of(counts), group);
    EXPECT_TRUE(at::equal(told.sent, at::tensor(counts, at::kLong).view({4, 2})));
    for (int64_t peer = 0; peer < 4; ++peer) {
      EXPECT_EQ(told.received[peer][0].item<int64_t>(), kRowsOfRanks[peer][rank]);
      EXPECT_EQ(told.received[peer][1].item<int64_t>(), peer);
      EXPECT_EQ(told.splits.sent[peer], kRowsOfRanks[rank][peer] + rank);
      EXPECT_EQ(told.splits.received[peer], kRowsOfRanks[peer][rank] + peer);
    }
    EXPECT_EQ(mesh.recorder().traffic().at({"tp", "all_to_all"}).bytes, 3 * 2 * 8);
  });
}

TEST(RowExchange, SortsWhatCameByNumberAndBack) {
  // two ranks, three numbers; a row holds [rank, number]
  const RowCounts told = {
      .sent = {}, .received = at::tensor({2, 0, 1, 1, 2, 0}, at::kLong).view({2, 3}), .splits = {}};
  const at::Tensor rows = at::tensor({0, 0, 0, 0, 0, 2, 1, 0, 1, 1, 1, 1}, at::kDouble)
                              .view({6, 2})
                              .set_requires_grad(true);
  const std::vector<at::Tensor> sorted = told.by_number(rows);
  ASSERT_EQ(sorted.size(), 3u);
  for (int64_t number = 0; number < 3; ++number)
    EXPECT_TRUE((sorted[number].select(1, 1) == number).all().item<bool>()) << number;
  EXPECT_TRUE(at::equal(sorted[0].select(1, 0), at::tensor({0, 0, 1}, at::kDouble)));
  EXPECT_TRUE(at::equal(sorted[1].select(1, 0), at::tensor({1, 1}, at::kDouble)));
  EXPECT_TRUE(at::equal(sorted[2].select(1, 0), at::tensor({0}, at::kDouble)));
  const at::Tensor back = told.by_rank({sorted[0] * 2, sorted[1] * 3, sorted[2] * 5});
  const at::Tensor factors = at::tensor({2, 2, 5, 2, 3, 3}, at::kDouble).unsqueeze(1);
  EXPECT_TRUE(at::equal(back, rows * factors));
  back.sum().backward();
  EXPECT_TRUE(at::equal(rows.grad(), factors.expand({6, 2})));
}

TEST(RowExchange, OnOneRankCountsItself) {
  const RowCounts told = exchange_counts(at::tensor({3, 0, 2}, at::kLong), 5, Group());
  EXPECT_EQ(told.splits.sent, std::vector<int64_t>{5});
  EXPECT_TRUE(at::equal(told.received, at::tensor({3, 0, 2}, at::kLong).view({1, 3})));
  EXPECT_TRUE(holds(error_of([] {
                      exchange_counts(at::tensor({3, 1}, at::kLong), 5, Group());
                    }).message(),
                    "the counts for group 'self' are 4 rows in all, but there are 5"));
}

TEST(RowExchange, IsDividedEvenlyWhereSimulated) {
  const Group group("ep", make_fake_backend(1, 2));
  const at::Tensor counts = at::empty({4}, at::TensorOptions().dtype(at::kLong).device(at::kMeta));
  const RowCounts told = exchange_counts(counts, 10, group);
  EXPECT_TRUE(at::equal(told.sent, at::tensor({3, 3, 2, 2}, at::kLong).view({2, 2})));
  EXPECT_TRUE(at::equal(told.received, told.sent));
  EXPECT_EQ(told.splits.sent, (std::vector<int64_t>{6, 4}));
  const at::Tensor rows = at::empty({10, 3}, at::TensorOptions().device(at::kMeta));
  EXPECT_EQ(all_to_all(rows, told.splits, group).sizes(), at::IntArrayRef({10, 3}));
}

TEST(RowExchange, WithRanksThatAreNotThereGivesWhatIsSent) {
  const Group group("ep", make_fake_backend(0, 2));
  const at::Tensor rows = at::arange(1, 5).view({4, 1});
  EXPECT_TRUE(at::equal(all_to_all(rows, {.sent = {1, 3}, .received = {1, 3}}, group), rows));
  const at::Tensor other = all_to_all(rows, {.sent = {1, 3}, .received = {2, 1}}, group);
  EXPECT_TRUE(at::equal(other.flatten(), at::tensor({1, 0, 2}, at::kLong)));
}

/// Keeps every result, like activation checkpointing with "op" keeps results of communication.
struct KeepsAll final : RecomputeScope {
  std::vector<at::Tensor> run(const Operation& operation, const Compute& compute) override {
    EXPECT_EQ(operation.kind, Operation::Kind::all_to_all);
    if (place == kept.size()) kept.push_back(compute());
    return kept[place++];
  }
  bool runs_again() const override { return place > 0; }
  std::vector<std::vector<at::Tensor>> kept;
  size_t place = 0;
};

TEST(RowExchange, IsNotRepeatedByARecomputationThatKeepsIt) {
  run_ranks({.tp = 2}, [](const Mesh& mesh) {
    const Group& group = mesh.group("tp");
    const at::Tensor rows = rows_of(2, group.rank(), {3}, at::kDouble);
    const at::Tensor counts = at::tensor(splits_of(2, group.rank()).sent, at::kLong);
    KeepsAll keeper;
    at::Tensor results[2];
    for (at::Tensor& result : results) {
      keeper.place = 0;
      const RecomputeScope::Entry entry(&keeper);
      const RowCounts told = exchange_counts(counts, rows.size(0), group);
      result = all_to_all(rows, told.splits, group);
    }
    EXPECT_TRUE(at::equal(results[0], results[1]));
    EXPECT_EQ(mesh.recorder().traffic().at({"tp", "all_to_all"}).calls, 2);
  });
}

}  // namespace
}  // namespace titan::dist
