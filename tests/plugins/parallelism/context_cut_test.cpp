// How the context plugin shards sequences: pieces, ranks' shares, visible keys, and lengths that it
// refuses.
#include <set>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "plugins/parallelism/context/blocks.h"
#include "plugins/parallelism/context/context_parallel.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/context_fixture.h"

namespace titan::context_test {
namespace {

using context_parallel::Block;
using context_parallel::ContextParallel;
using testing::error_of;
using testing::holds;

std::vector<int64_t> numbers(const Tensor& x) {
  const Tensor flat = x.to(at::kLong).contiguous().view({-1});
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

/// Tokens 0 ... S - 1 of one row.
Tensor tokens(int64_t seq_len) {
  return at::arange(seq_len).unsqueeze(0);
}

using Lists = std::vector<std::vector<int64_t>>;
Lists shares_of(const SequenceCut& cut, int64_t seq_len) {
  Lists shares;
  for (int64_t rank = 0; rank < cut.num_ranks(); ++rank)
    shares.push_back(numbers(cut.share_of(rank, tokens(seq_len))));
  return shares;
}

TEST(SequenceCut, GivesEachRankAHeadAndATail) {
  EXPECT_EQ(shares_of({2, LoadBalancer::headtail}, 8), (Lists{{0, 1, 6, 7}, {2, 3, 4, 5}}));
  EXPECT_EQ(shares_of({3, LoadBalancer::headtail}, 12),
            (Lists{{0, 1, 10, 11}, {2, 3, 8, 9}, {4, 5, 6, 7}}));
}

TEST(SequenceCut, GivesPiecesInOrderWithoutBalancing) {
  EXPECT_EQ(shares_of({2, LoadBalancer::none}, 8), (Lists{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(shares_of({3, LoadBalancer::none}, 9), (Lists{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}));
}

TEST(SequenceCut, PutsTheSharesOfAllRanksSideBySide) {
  const SequenceCut cut(3, LoadBalancer::headtail);
  EXPECT_EQ(numbers(cut.in_rank_order(tokens(12))),
            (std::vector<int64_t>{0, 1, 10, 11, 2, 3, 8, 9, 4, 5, 6, 7}));
  const Tensor x = at::arange(2 * 12).view({2, 12});
  for (int64_t rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(at::equal(cut.in_rank_order(x).narrow(1, 4 * rank, 4), cut.share_of(rank, x)));
}

TEST(SequenceCut, NamesTheLengthsThatFit) {
  const Error balanced = error_of([] { SequenceCut(4, LoadBalancer::headtail).check_length(100); });
  EXPECT_EQ(balanced.kind(), ErrorKind::config);
  EXPECT_STREQ(balanced.what(),
               "a sequence of 100 tokens cannot be cut over 4 context-parallel ranks: load "
               "balancer 'headtail' makes 8 equal pieces; set training.seq_len to 96 or 104");
  SequenceCut(4, LoadBalancer::none).check_length(100);
  const Error few = error_of([] { SequenceCut(4, LoadBalancer::none).check_length(3); });
  EXPECT_TRUE(holds(few.what(), "makes 4 equal pieces; set training.seq_len to 4"));
}

/// Pairs of a token and a token that it sees, by position in the whole row: the union of the
/// blocks, each pair once.
std::set<std::pair<int64_t, int64_t>> seen_pairs(const SequenceCut& cut, int64_t row,
                                                 int64_t num_rows, int64_t seq_len,
                                                 const Tensor& documents) {
  const int64_t n = seq_len / cut.num_ranks();
  std::set<std::pair<int64_t, int64_t>> pairs;
  const Lists shares = shares_of(cut, seq_len);
  for (int64_t rank = 0; rank < cut.num_ranks(); ++rank)
    for (int64_t source = 0; source < cut.num_ranks(); ++source)
      for (const Block& block :
           context_parallel::visible_blocks(cut, rank, source, num_rows, n, documents)) {
        if (row < block.rows.first || row >= block.rows.first + block.rows.count) continue;
        EXPECT_GT(block.queries.count * block.keys.count, 0);
        for (int64_t i = 0; i < block.queries.count; ++i)
          for (int64_t j = 0; j < (block.causal ? i + 1 : block.keys.count); ++j) {
            const int64_t query = shares[static_cast<size_t>(rank)].at(block.queries.first + i);
            const int64_t key = shares[static_cast<size_t>(source)].at(block.keys.first + j);
            EXPECT_TRUE(pairs.emplace(query, key).second) << query << " sees " << key << " twice";
          }
      }
  return pairs;
}

TEST(SequenceCut, BlocksCoverWhatIsSeenExactlyOnce) {
  constexpr int64_t kSeqLen = 48;
  const Tensor documents =
      documents_from({{}, {11}, {11}, {1, 2, 3, 30, 47}, {24}, {23, 25, 40}}, kSeqLen);
  for (const ContextCase& c : all_cases({1, 2, 3, 4, 6, 8}))
    for (const Tensor& held : {Tensor(), documents})
      for (int64_t row = 0; row < documents.size(0); ++row) {
        std::set<std::pair<int64_t, int64_t>> expected;
        const std::vector<int64_t> ids = numbers(documents[row]);
        for (int64_t query = 0; query < kSeqLen; ++query)
          for (int64_t key = 0; key <= query; ++key)
            if (!held.defined() || ids[query] == ids[key]) expected.emplace(query, key);
        const Tensor ordered = held.defined() ? c.cut().in_rank_order(held) : Tensor();
        EXPECT_EQ(seen_pairs(c.cut(), row, documents.size(0), kSeqLen, ordered), expected)
            << c.text() << ", row " << row;
      }
}

TEST(SequenceCut, RowsThatSeeTheSameShareTheirBlocks) {
  const SequenceCut cut(2, LoadBalancer::headtail);
  const Tensor documents = cut.in_rank_order(documents_from({{}, {}, {5}, {5}, {}}, 8));
  const auto of_rank_0 = context_parallel::visible_blocks(cut, 1, 0, 5, 4, documents);
  std::vector<int64_t> rows;
  for (const Block& block : of_rank_0) rows.push_back(block.rows.count);
  EXPECT_EQ(rows, (std::vector<int64_t>{2, 2, 1}));
}

/// The work of a rank in pairs of query and key.
TEST(SequenceCut, HeadAndTailGiveAllRanksTheSameWork) {
  constexpr int64_t kRanks = 4, kShare = 16;
  const SequenceCut cut(kRanks, LoadBalancer::headtail);
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    int64_t work = 0;
    for (int64_t source = 0; source < kRanks; ++source)
      for (const Block& b : context_parallel::visible_blocks(cut, rank, source, 1, kShare, {}))
        work +=
            b.causal ? b.queries.count * (b.queries.count + 1) / 2 : b.queries.count * b.keys.count;
    EXPECT_EQ(work, kShare * (kShare + 1) / 2 + (kRanks - 1) * kShare * kShare / 2);
  }
}

/// The plugin's object on rank `rank` of `c`; sends no messages.
ContextParallel make_splitter(const ContextCase& c, int rank, Device& device) {
  const dist::Mesh mesh(dist::MeshShape{.cp = c.cp}, rank,
                        [&](const std::string&, const auto& ranks) {
                          return dist::make_fake_backend(rank, static_cast<int>(ranks.size()));
                        });
  return {{.rotate_method = c.method, .load_balancer = c.balancer}, {mesh, device}};
}

TEST(ContextSplit, SharesAreAPermutationOfTheBatch) {
  const auto device = testing::make_cpu();
  const Tensor place = at::arange(3 * 48).view({3, 48});
  const Batch whole{.tokens = place,
                    .labels = place * 3 + 1,
                    .positions = place % 48 % 7,
                    .num_positions = 7,
                    .documents = documents_from({{4}, {}, {40, 41}}, 48),
                    .places = {.first_row = 2}};
  for (const ContextCase& c : all_cases({1, 2, 3, 4, 8})) {
    std::vector<Tensor> parts, ordered;
    for (int rank = 0; rank < c.cp; ++rank) {
      const Batch part = make_splitter(c, rank, *device).split(whole);
      ASSERT_EQ(part.tokens.sizes(), at::IntArrayRef({3, 48 / c.cp}));
      EXPECT_TRUE(at::equal(part.labels, part.tokens * 3 + 1));
      EXPECT_TRUE(at::equal(part.positions, part.tokens % 48 % 7));
      EXPECT_EQ(part.num_positions, 7);
      EXPECT_TRUE(at::equal(part.documents, c.cut().in_rank_order(whole.documents)));
      EXPECT_TRUE(at::equal(part.places.numbers(3, 48 / c.cp, c10::kCPU), part.tokens + 2 * 48));
      parts.push_back(part.tokens);
    }
    EXPECT_TRUE(at::equal(at::cat(parts, 1), c.cut().in_rank_order(place))) << c.text();
    EXPECT_TRUE(at::equal(std::get<0>(at::cat(parts, 1).sort(1)), place)) << c.text();
  }
}

TEST(ContextSplit, MakesPositionsWhereThereAreNone) {
  const auto device = testing::make_cpu();
  const Batch whole{.tokens = at::arange(16).view({2, 8}) + 100};
  const Batch part = make_splitter({.cp = 2}, 0, *device).split(whole);
  EXPECT_EQ(numbers(part.positions), (std::vector<int64_t>{0, 1, 6, 7, 0, 1, 6, 7}));
  EXPECT_EQ(part.num_positions, 8);
  EXPECT_FALSE(part.labels.defined());
  EXPECT_EQ(numbers(part.rows(1, 1).positions), (std::vector<int64_t>{0, 1, 6, 7}));
}

TEST(ContextSplit, RefusesWhatItCannotCut) {
  const auto device = testing::make_cpu();
  const ContextParallel splitter = make_splitter({.cp = 2}, 0, *device);
  const Error length = error_of([&] { splitter.split({.tokens = at::arange(10).view({1, 10})}); });
  EXPECT_EQ(length.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(length.what(), "set training.seq_len to 8 or 12"));
  const Error order = error_of([&] {
    splitter.split(
        {.tokens = at::arange(16).view({2, 8}),
         .documents =
             at::tensor({3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 1, 1, 0, 2, 2, 2}, at::kInt).view({2, 8})});
  });
  EXPECT_EQ(order.kind(), ErrorKind::data);
  EXPECT_STREQ(order.what(),
               "numbers of documents must ascend within a row, got 0 after 1 (row 1, token 4)");
}

TEST(ContextSplit, TheKernelRefusesWhatWasNotCut) {
  const ContextCase c;
  const auto kernel = context_parallel::make_kernel(
      c.cut(), 0,
      context_parallel::make_exchange(c.method, dist::Group("cp", dist::make_fake_backend(0, 2))));
  const Tensor q = at::zeros({1, 2, 4, 8}), odd = at::zeros({1, 2, 3, 8});
  EXPECT_THROW(kernel->attend(odd, odd, odd, {}), Error);
  const Error documents = error_of([&] {
    kernel->attend(q, q, q, {.documents = at::zeros({1, 4}, at::kInt)});
  });
  EXPECT_TRUE(holds(documents.what(), "documents must be int32 (1, 8) in host memory"));
  EXPECT_THROW(kernel->attend(q, odd, odd, {}), Error);
  EXPECT_THROW(kernel->attend(q, q, q.to(at::kDouble), {}), Error);
}

}  // namespace
}  // namespace titan::context_test
