// Experts distributed over ranks against all experts on one rank, in fp64: outputs, gradients of
// tokens, gate and experts; ranks without tokens, experts without tokens, all tokens at one rank.
// For tensor parallelism see expert_tensor_test.cpp.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ops/cat.h>
#include <titan/error.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"
#include "tests/plugins/parallelism/expert_fixture.h"

namespace titan::expert_test {
namespace {

using at::Tensor;
using testing::error_of;
using testing::holds;
using testing::make_cpu;
using testing::run_ranks;
using Ranks = std::vector<int>;

struct Case {
  Kind kind;
  std::vector<int64_t> tokens;  // tokens of each rank
};
const Case kCases[] = {
    {{"drawn", 3}, {5, 4, 3, 7}},
    {{"weighed before", 2, true}, {5, 4, 3, 7}},
    {{"all to the first rank", 2, false, {4, 3, 0, 0, 0, 0, 0, 0}}, {5, 4, 3, 7}},
    {{"all to one expert of the last rank", 1, false, {0, 0, 0, 0, 0, 0, 0, 4}}, {5, 4, 3, 7}},
    {{"ties", 2, false, {0, 0, 0, 0, 0, 0, 0, 0}}, {5, 4, 3, 7}},
    {{"ranks without tokens"}, {5, 0, 3, 0}},
    {{"no tokens at all"}, {0, 0, 0, 0}},
};

TEST(ExpertParallel, ComesToWhatOneRankComesTo) {
  testing::open_plugins();
  for (const auto& [kind, tokens] : kCases)
    for (const int ranks : {2, 4})
      run_ranks(expert_grid({.dp_shard = ranks}, ranks), [&](const dist::Mesh& mesh) {
        const std::string what = std::string(kind.name) + ", " + std::to_string(ranks) + " ranks";
        const auto device = make_cpu();
        ModelPart part(one_mixture(kind)), whole(one_mixture(kind));
        const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
        make_expert(context, ranks)->apply(part, context);
        for (ModelPart* one : {&part, &whole}) give_memory(*one, kind);
        std::vector<Tensor> xs, dys;
        for (int r = 0; r < ranks; ++r) {
          const int64_t count = tokens[static_cast<size_t>(r)];
          xs.push_back(numbers(1, count, r, 0)), dys.push_back(numbers(1, count, r, 0.5) - 1);
        }
        const auto mine = static_cast<size_t>(mesh.rank());
        const Passed here = pass(part, xs[mine], dys[mine]);
        const Passed there = pass(whole, at::cat(xs, 1), at::cat(dys, 1));
        int64_t first = 0;
        for (size_t r = 0; r < mine; ++r) first += tokens[r];
        expect_close(here.y, there.y.narrow(1, first, tokens[mine]), what);
        expect_close(here.dx, there.dx.narrow(1, first, tokens[mine]), what + ": dx");
        for (size_t i = 0; i < part.parameters().size(); ++i) {
          nn::Parameter &own = *part.parameters()[i], &all = *whole.parameters()[i];
          const std::string name = what + ": " + own.name();
          Tensor gradient = own.grad().clone();
          if (own.shardings().empty()) {  // the gate's gradient covers only this rank's tokens
            mesh.group("ep").all_reduce(gradient, dist::Reduce::sum).wait();
            expect_close(gradient, all.grad(), name);
          } else {
            EXPECT_EQ(own.slice().sizes[0], kExperts / ranks) << name;
            expect_close(gradient, all.grad().narrow(0, own.slice().offsets[0], kExperts / ranks),
                         name);
          }
        }
      });
}

TEST(ExpertParallel, SendsRowsAsOftenAsTheFormulaSays) {
  testing::open_plugins();
  const Kind kind = {.name = "even", .forces_balance = true};
  constexpr int kRanks = 4;
  constexpr int64_t kTokens = 8;
  run_ranks(expert_grid({.dp_shard = kRanks}, kRanks), [&](const dist::Mesh& mesh) {
    const auto device = make_cpu();
    ModelPart part(one_mixture(kind));
    const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
    make_expert(context, kRanks)->apply(part, context);
    give_memory(part, kind);
    pass(part, numbers(1, kTokens, mesh.rank(), 0), numbers(1, kTokens, mesh.rank(), 1));
    // there and back, in forward and backward: of N k rows those for other ranks; and once the
    // counts
    const int64_t rows = 4 * kTokens * kind.top_k * kDim * 8 * (kRanks - 1) / kRanks;
    const int64_t counts = kExperts * 8 * (kRanks - 1) / kRanks;
    EXPECT_EQ(testing::traffic_of(mesh, "ep", "all_to_all").bytes, rows + counts);
  });
}

/// Groups observed in torchtitan v0.2.2's mesh.
TEST(ExpertParallel, TakesTheRanksThatTorchtitanTakes) {
  dist::Grid grid = expert_grid({.dp_shard = 4, .tp = 2}, 4);
  EXPECT_EQ(grid.ranks(1, "ep"), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(grid.ranks(6, "ep"), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(grid.ranks(5, grid.complement("fsdp", {"ep"})), (Ranks{1, 5}));
  EXPECT_EQ(grid.ranks(7, "ep-of-tp"), (Ranks{6, 7}));

  grid = expert_grid({.dp_shard = 4, .tp = 2}, 2, 2);
  EXPECT_EQ(grid.ranks(0, "ep"), (Ranks{0, 2}));
  EXPECT_EQ(grid.ranks(7, "ep"), (Ranks{5, 7}));
  EXPECT_EQ(grid.ranks(0, grid.complement("fsdp", {"ep", "tp"})), (Ranks{0, 4}));
  EXPECT_EQ(grid.size("ep-of-tp"), 1);

  grid = expert_grid({.pp = 2, .dp_shard = 2, .cp = 2}, 4);
  EXPECT_EQ(grid.ranks(5, "ep"), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(grid.ranks(5, "fsdp"), (Ranks{4, 5, 6, 7}));

  grid = expert_grid({.dp_replicate = 2, .dp_shard = 4}, 2);
  EXPECT_EQ(grid.ranks(0, "ep"), (Ranks{0, 1}));
  EXPECT_EQ(grid.ranks(3, grid.complement("fsdp", {"ep"})), (Ranks{1, 3}));
}

TEST(ExpertParallel, NamesWhatItCannotDeal) {
  testing::open_plugins();
  run_ranks(expert_grid({.dp_shard = 3}, 3), [&](const dist::Mesh& mesh) {
    const auto device = make_cpu();
    const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
    const auto made = make_expert(context, 3);
    ModelPart uneven(one_mixture(kCases[0].kind)), without(testing::llama_layers(false));
    const Error dealt = error_of([&] { made->apply(uneven, context); });
    EXPECT_EQ(dealt.kind(), ErrorKind::config);
    EXPECT_TRUE(
        holds(dealt.what(), "the 8 experts of 'moe' cannot be distributed evenly over 3 ranks"));
    EXPECT_TRUE(holds(error_of([&] { made->apply(without, context); }).what(),
                      "found no experts to distribute"));

    ModelPart adapted(one_mixture(kCases[0].kind));
    adapted.visit_modules([](const std::string& path, nn::Module& module) {
      if (path != "moe.experts.w1") return;
      module.attach("adapter",
                    std::make_unique<nn::Linear>(2, 2, nn::WeightLayout::replicated, nn::Init()));
    });
    adapted.refresh();
    EXPECT_TRUE(
        holds(error_of([&] { made->apply(adapted, context); }).what(),
              "'moe.experts.w1.adapter.weight', which expert parallelism cannot distribute"));
  });
}

}  // namespace
}  // namespace titan::expert_test
