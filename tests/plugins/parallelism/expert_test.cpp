// Experts that are dealt to ranks against all of them on one, in fp64: outputs, gradients of
// tokens, gate and experts; ranks without tokens, experts without any, all tokens at one rank.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <titan/error.h>
#include <titan/nn/moe.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan {
namespace {

using at::Tensor;
using namespace titan::testing;

constexpr int64_t kDim = 6, kExperts = 8;

struct Kind {
  const char* name;
  int64_t top_k;
  bool weighs_inputs;
  std::vector<double> gate;  // each expert's weight of every element of a token, which are positive
  std::vector<int64_t> tokens;  // of the ranks
};
const Kind kKinds[] = {
    {"drawn", 3, false, {}, {5, 4, 3, 7}},
    {"weighed before", 2, true, {}, {5, 4, 3, 7}},
    {"all to the first rank", 2, false, {4, 3, 0, 0, 0, 0, 0, 0}, {5, 4, 3, 7}},
    {"all to one expert of the last rank", 1, false, {0, 0, 0, 0, 0, 0, 0, 4}, {5, 4, 3, 7}},
    {"ties", 2, false, {0, 0, 0, 0, 0, 0, 0, 0}, {5, 4, 3, 7}},
    {"ranks without tokens", 2, false, {}, {5, 0, 3, 0}},
    {"no tokens at all", 2, false, {}, {0, 0, 0, 0}},
};

std::vector<Layer> one_mixture(const Kind& kind, bool forces_balance = false) {
  const nn::Init init = nn::Init::normal(0, 0.5);
  std::vector<Layer> layers;
  layers.push_back({"moe",
                    std::make_unique<nn::MixtureOfExperts>(
                        nn::MoeOptions{.router = {.dim = kDim,
                                                  .num_experts = kExperts,
                                                  .top_k = kind.top_k,
                                                  .normalises = kind.top_k > 1,
                                                  .forces_balance = forces_balance,
                                                  .init = init},
                                       .hidden_dim = 10,
                                       .weighs_inputs = kind.weighs_inputs,
                                       .gate_init = init,
                                       .output_init = init}),
                    "moe", kDim});
  return layers;
}

void set_gate(ModelPart& part, const Kind& kind) {
  for (nn::Parameter* parameter : part.parameters())
    if (!kind.gate.empty() && parameter->name() == "moe.router.gate.weight")
      for (int64_t e = 0; e < kExperts; ++e)
        parameter->shard().detach()[e].fill_(kind.gate[static_cast<size_t>(e)]);
}

/// (1, tokens, dim), a deterministic mess between 0 and 2 that differs by rank.
Tensor numbers(int64_t tokens, int64_t rank, double shift) {
  const Tensor places = at::arange(tokens * kDim, at::TensorOptions().dtype(at::kDouble));
  return at::sin(places * 12.9898 + static_cast<double>(rank) * 3.7 + shift)
             .view({1, tokens, kDim}) +
         1;
}

struct Passed {
  Tensor y, dx;
};
Passed pass(ModelPart& part, const Tensor& values, const Tensor& dy) {
  const Tensor x = values.clone().set_requires_grad(true);
  const Tensor y = (*part.layers()[0].module)(x, Batch());
  y.backward(dy);
  return {y.detach(), x.grad()};
}

void expect_close(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  if (found.numel() > 0) EXPECT_LE((found - expected).abs().max().item<double>(), 1e-12) << what;
}

TEST(ExpertParallel, ComesToWhatOneRankComesTo) {
  open_plugins();
  for (const Kind& kind : kKinds)
    for (const int ranks : {2, 4}) {
      dist::Grid grid(dist::MeshShape{.dp_shard = ranks});
      grid.borrow("ep", ranks, {"cp", "dp_shard"});
      run_ranks(grid, [&](const dist::Mesh& mesh) {
        const std::string what = std::string(kind.name) + ", " + std::to_string(ranks) + " ranks";
        const auto device = make_cpu();
        ModelPart part(one_mixture(kind)), whole(one_mixture(kind));
        const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
        create<Parallelism>("expert", Value::map({{"degree", ranks}}), context)
            ->apply(part, context);
        for (ModelPart* one : {&part, &whole}) {
          one->materialize(c10::kCPU, at::kDouble, kSeed);
          set_gate(*one, kind);
        }
        std::vector<Tensor> xs, dys;
        for (int r = 0; r < ranks; ++r) {
          const int64_t tokens = kind.tokens[static_cast<size_t>(r)];
          xs.push_back(numbers(tokens, r, 0)), dys.push_back(numbers(tokens, r, 0.5) - 1);
        }
        const auto mine = static_cast<size_t>(mesh.rank());
        const Passed here = pass(part, xs[mine], dys[mine]);
        const Passed there = pass(whole, at::cat(xs, 1), at::cat(dys, 1));
        int64_t first = 0;
        for (size_t r = 0; r < mine; ++r) first += kind.tokens[r];
        expect_close(here.y, there.y.narrow(1, first, kind.tokens[mine]), what);
        expect_close(here.dx, there.dx.narrow(1, first, kind.tokens[mine]), what + ": dx");
        for (size_t i = 0; i < part.parameters().size(); ++i) {
          nn::Parameter &own = *part.parameters()[i], &all = *whole.parameters()[i];
          const std::string name = what + ": " + own.name();
          Tensor gradient = own.grad().clone();
          if (own.shardings().empty()) {  // the gate's, of this rank's tokens
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
}

TEST(ExpertParallel, SendsRowsAsOftenAsTheFormulaSays) {
  open_plugins();
  const Kind kind = {"even", 2, false, {}, {}};
  constexpr int kRanks = 4;
  constexpr int64_t kTokens = 8;
  dist::Grid grid(dist::MeshShape{.dp_shard = kRanks});
  grid.borrow("ep", kRanks, {"cp", "dp_shard"});
  run_ranks(grid, [&](const dist::Mesh& mesh) {
    const auto device = make_cpu();
    ModelPart part(one_mixture(kind, /*forces_balance=*/true));
    const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
    create<Parallelism>("expert", Value::map({{"degree", kRanks}}), context)->apply(part, context);
    part.materialize(c10::kCPU, at::kDouble, kSeed);
    pass(part, numbers(kTokens, mesh.rank(), 0), numbers(kTokens, mesh.rank(), 1));
    // there and back, forward and backward, of N k rows those for other ranks; and once the counts
    const int64_t rows = 4 * kTokens * kind.top_k * kDim * 8 * (kRanks - 1) / kRanks;
    const int64_t counts = kExperts * 8 * (kRanks - 1) / kRanks;
    EXPECT_EQ(traffic_of(mesh, "ep", "all_to_all").bytes, rows + counts);
  });
}

TEST(ExpertParallel, NamesWhatItCannotDeal) {
  open_plugins();
  dist::Grid grid(dist::MeshShape{.dp_shard = 3});
  grid.borrow("ep", 3, {"cp", "dp_shard"});
  run_ranks(grid, [&](const dist::Mesh& mesh) {
    const auto device = make_cpu();
    const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
    const auto made = create<Parallelism>("expert", Value::map({{"degree", 3}}), context);
    ModelPart uneven(one_mixture(kKinds[0])), without(llama_layers(false));
    const Error dealt = error_of([&] { made->apply(uneven, context); });
    EXPECT_EQ(dealt.kind(), ErrorKind::config);
    EXPECT_TRUE(holds(dealt.what(), "the 8 experts of 'moe' cannot be dealt to 3 ranks"));
    EXPECT_TRUE(
        holds(error_of([&] { made->apply(without, context); }).what(), "found no experts to deal"));
  });
}

}  // namespace
}  // namespace titan
