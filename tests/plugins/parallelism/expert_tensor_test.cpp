// Experts with tensor parallelism, whose ranks hold whole experts or shards of each. Compared with
// all experts on one rank, in fp64 and several layouts: exact choices, outputs, and separately the
// gradients of tokens, gate and experts.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <titan/nn/cuts.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"
#include "tests/plugins/parallelism/expert_fixture.h"

namespace titan::expert_test {
namespace {

using at::Tensor;

constexpr int64_t kRows = 2;

struct Layout {
  int64_t shard, tp, degree, tensor_degree;
  bool sequence;  // sequence parallelism: each rank of tp has its part of the sequence

  /// Divisible by four, or by no number of ranks.
  int64_t length() const { return sequence ? 8 : 5; }
  std::string text() const {
    return "shard " + std::to_string(shard) + ", tp " + std::to_string(tp) + ", ep " +
           std::to_string(degree) + ", etp " + std::to_string(tensor_degree) +
           (sequence ? ", sequence: " : ": ");
  }
};

std::vector<Layout> all_layouts() {
  std::vector<Layout> layouts;
  for (const bool sequence : {true, false})
    for (const auto& [shard, tp, degree, tensor_degree] :
         std::vector<std::array<int64_t, 4>>{{1, 2, 2, 1},  // experts spread over ranks of tp
                                             {2, 2, 4, 1},  // and of dp_shard
                                             {1, 4, 4, 1},
                                             {1, 4, 2, 1},  // over some of tp's ranks
                                             {1, 2, 1, 2},  // each expert sharded over tp
                                             {1, 4, 1, 4},
                                             {2, 2, 2, 2}})  // and experts spread over dp_shard
      layouts.push_back({shard, tp, degree, tensor_degree, sequence});
  return layouts;
}

const Kind kTensorKinds[] = {
    {"drawn", 3},
    {"weighed before", 2, true},
    {"all to the first rank", 2, false, {4, 3, 0, 0, 0, 0, 0, 0}},
    {"ties", 2, false, {0, 0, 0, 0, 0, 0, 0, 0}},
    {.name = "shared experts and biases", .has_shared_and_biases = true},
};

/// The router's choices during the run of the layer.
void keep_choices(ModelPart& part, Tensor& choices) {
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    if (path != "moe.router.choice") return;
    module.wrap([&choices](const Tensor& x, const Batch& batch, const nn::Next& next) {
      choices = next(x, batch);
      return choices;
    });
  });
}

void spread(ModelPart& part, const Layout& layout, const TransformContext& context) {
  testing::create<Parallelism>("tensor", Value::map({{"sequence_parallel", layout.sequence}}),
                               context)
      ->apply(part, context);
  make_expert(context, layout.degree, layout.tensor_degree)->apply(part, context);
}

/// This rank's part of a tensor of all tokens in its data-parallel group.
class OwnPart {
 public:
  OwnPart(const Layout& layout, const dist::Mesh& mesh) {
    row_ = mesh.group("dp_shard").rank() * kRows;
    length_ = layout.length() / (layout.sequence ? layout.tp : 1);
    first_ = layout.sequence ? mesh.group("tp").rank() * length_ : 0;
  }
  Tensor of(const Tensor& all) const {
    return all.narrow(0, row_, kRows).narrow(1, first_, length_);
  }

 private:
  int64_t row_ = 0, first_ = 0, length_ = 0;
};

void compare(const Layout& layout, const Kind& kind, const dist::Mesh& mesh) {
  const std::string what = layout.text() + kind.name;
  const auto device = testing::make_cpu();
  ModelPart part(one_mixture(kind)), whole(one_mixture(kind));
  spread(part, layout, {mesh, *device, at::kDouble, at::kDouble});
  Tensor chosen, all_chosen;
  keep_choices(part, chosen), keep_choices(whole, all_chosen);
  for (ModelPart* one : {&part, &whole}) give_memory(*one, kind);
  std::vector<Tensor> xs, dys;
  for (int64_t r = 0; r < layout.shard; ++r) {
    xs.push_back(numbers(kRows, layout.length(), r, 0));
    dys.push_back(numbers(kRows, layout.length(), r, 0.5) - 1);
  }
  const Tensor x = at::cat(xs), dy = at::cat(dys);
  const OwnPart own(layout, mesh);
  const Passed here = pass(part, own.of(x), own.of(dy)), there = pass(whole, x, dy);
  EXPECT_TRUE(at::equal(chosen, own.of(all_chosen))) << what;
  expect_close(here.y, own.of(there.y), what);
  expect_close(here.dx, own.of(there.dx), what + ": dx");
  for (size_t i = 0; i < part.parameters().size(); ++i) {
    nn::Parameter &cut = *part.parameters()[i], &all = *whole.parameters()[i];
    const std::string name = what + ": " + cut.name();
    ASSERT_TRUE(cut.grad().defined()) << name;
    Tensor gradient = cut.grad().clone();
    mesh.complement("fsdp", nn::cut_groups(cut)).all_reduce(gradient, dist::Reduce::sum).wait();
    expect_close(gradient, testing::slice_of(all.grad(), cut.slice()), name);
    if (cut.name().starts_with("moe.experts.") && cut.name() != "moe.experts.w2_bias") {
      EXPECT_EQ(cut.shard().numel() * layout.degree * layout.tensor_degree, all.shard().numel())
          << name;
    }
  }
}

TEST(ExpertTensorParallel, ComesToWhatOneRankComesTo) {
  testing::open_plugins();
  for (const Layout& layout : all_layouts())
    testing::run_ranks(expert_grid({.dp_shard = layout.shard, .tp = layout.tp}, layout.degree,
                                   layout.tensor_degree),
                       [&](const dist::Mesh& mesh) {
                         for (const Kind& kind : kTensorKinds) compare(layout, kind, mesh);
                       });
}

TEST(ExpertTensorParallel, SendsTokensAndNotTheirSlotsOverTensorParallelism) {
  testing::open_plugins();
  const Kind kind = {.name = "even", .top_k = 4, .forces_balance = true};
  const Layout layout = {.shard = 1, .tp = 2, .degree = 1, .tensor_degree = 2, .sequence = true};
  testing::run_ranks(expert_grid({.tp = 2}, 1, 2), [&](const dist::Mesh& mesh) {
    const auto device = testing::make_cpu();
    ModelPart part(one_mixture(kind));
    spread(part, layout, {mesh, *device, at::kDouble, at::kDouble});
    give_memory(part, kind);
    constexpr int64_t kTokens = 8;  // tokens of a rank
    pass(part, numbers(1, kTokens, mesh.rank(), 0), numbers(1, kTokens, mesh.rank(), 1));
    // to and from the other rank, in both directions: its tokens, and one number for each of its
    // slots
    const int64_t tokens = kTokens * kDim * 8, slots = kTokens * kind.top_k * 8;
    EXPECT_EQ(testing::traffic_of(mesh, "tp", "reduce_scatter").bytes, 2 * tokens + slots);
    EXPECT_EQ(testing::traffic_of(mesh, "tp", "all_gather").bytes, 2 * tokens + 2 * slots);
  });
}

TEST(ExpertTensorParallel, NamesWhatItCannotCut) {
  testing::open_plugins();
  testing::run_ranks(expert_grid({.tp = 5}, 1, 5), [&](const dist::Mesh& mesh) {
    const auto device = testing::make_cpu();
    const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
    ModelPart uneven(one_mixture(kTensorKinds[0])), without(testing::llama_layers(false));
    const Error cut =
        testing::error_of([&] { make_expert(context, 1, 5)->apply(uneven, context); });
    EXPECT_EQ(cut.kind(), ErrorKind::config);
    EXPECT_TRUE(testing::holds(cut.what(),
                               "the hidden width 12 of the experts of 'moe' cannot be "
                               "cut into 5 equal parts"));
    EXPECT_TRUE(testing::holds(
        testing::error_of([&] { make_expert(context, 1, 5)->apply(without, context); }).what(),
        "found no experts"));
    EXPECT_TRUE(testing::holds(
        testing::error_of([&] { make_expert(context, 1, 2)->apply(uneven, context); }).what(),
        "all 5 ranks of tensor parallelism or none: set "
        "parallelism.expert_tensor_parallel_degree"));
  });
}

/// The region would sum results that are complete on each rank.
TEST(ExpertTensorParallel, RefusesAMixtureWithinARegionOfTensorParallelism) {
  testing::open_plugins();
  for (const auto& [degree, tensor_degree] : {std::pair<int64_t, int64_t>{2, 1}, {1, 2}})
    testing::run_ranks(expert_grid({.tp = 2}, degree, tensor_degree), [&](const dist::Mesh& mesh) {
      const auto device = testing::make_cpu();
      const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
      ModelPart part(one_mixture(kTensorKinds[0]));
      make_expert(context, degree, tensor_degree)->apply(part, context);
      give_memory(part, kTensorKinds[0]);
      const Batch batch{.copies = {.num_ranks = 2, .gradients_are_summed = true}};
      const Error error =
          testing::error_of([&] { (*part.layers()[0].module)(numbers(1, 4, 0, 0), batch); });
      EXPECT_TRUE(testing::holds(error.what(), "put the mixture outside of it"));
    });
}

}  // namespace
}  // namespace titan::expert_test
