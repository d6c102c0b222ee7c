// A mixture of experts against one that runs every expert for every token under ATen's autograd:
// choices, ties, balance, and the results that recomputation keeps.
// tests/referee/mixture_referee.py compares models with transformers.
#include <titan/nn/moe.h>

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/recompute.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::nn::moe_test {
namespace {

using at::Tensor;
using titan::testing::error_of;
using titan::testing::holds;

constexpr int64_t kDim = 6, kHidden = 10, kExperts = 5;

MoeOptions small(const std::function<void(MoeOptions&)>& change = {}) {
  const Init init = Init::normal(0, 0.5);
  MoeOptions options = {.router = {.dim = kDim, .num_experts = kExperts, .top_k = 2, .init = init},
                        .hidden_dim = kHidden,
                        .gate_init = init,
                        .output_init = init};
  if (change) change(options);
  return options;
}

void give_memory(Module& module, at::ScalarType type) {
  module.set_names("m");
  module.visit_parameters([&](Parameter& p) {
    if (!p.is_materialized()) p.materialize(c10::kCPU, type, 21);
  });
}

std::vector<Parameter*> weights_of(Module& module) {
  std::vector<Parameter*> found;
  module.visit_parameters([&](Parameter& p) {
    if (!p.is_state() && std::find(found.begin(), found.end(), &p) == found.end())
      found.push_back(&p);
  });
  return found;
}

Tensor value_of(Module& module, const std::string& name) {
  Tensor found;
  module.visit_parameters([&](Parameter& p) {
    if (p.name() == "m." + name) found = p.value();
  });
  return found;
}

/// Every expert for every token, with ATen operations only.
Tensor dense(MixtureOfExperts& moe, const MoeOptions& o, const Tensor& x) {
  const Tensor logits = x.matmul(value_of(moe, "router.gate.weight").t());
  const Tensor scores =
      o.router.score == RouterScore::softmax ? logits.softmax(-1) : logits.sigmoid();
  Tensor choice = scores.detach();
  if (o.router.is_biased()) choice = choice + value_of(moe, "expert_bias");
  const Tensor chosen = std::get<1>(choice.topk(o.router.top_k));
  Tensor weights = at::zeros_like(scores).scatter(-1, chosen, 1.0) * scores;
  if (o.router.normalises) weights = weights / weights.sum(-1, true);
  weights = weights * o.router.scale;
  Tensor y = at::zeros_like(x);
  for (int64_t e = 0; e < kExperts; ++e) {
    const Tensor w = weights.select(-1, e).unsqueeze(-1), in = o.weighs_inputs ? x * w : x;
    const auto of_expert = [&](const char* name) { return value_of(moe, name)[e].t(); };
    const Tensor out =
        (at::silu(in.matmul(of_expert("experts.w1"))) * in.matmul(of_expert("experts.w3")))
            .matmul(of_expert("experts.w2"));
    y = y + (o.weighs_inputs ? out : out * w);
  }
  if (o.num_shared_experts == 0) return y;
  const auto shared = [&](const char* name) { return value_of(moe, name).t(); };
  return y + (at::silu(x.matmul(shared("shared_experts.w1.weight"))) *
              x.matmul(shared("shared_experts.w3.weight")))
                 .matmul(shared("shared_experts.w2.weight"));
}

TEST(MixtureOfExperts, ComesToWhatEveryExpertForEveryTokenComesTo) {
  const std::vector<std::function<void(MoeOptions&)>> kinds = {
      [](MoeOptions&) {},
      [](MoeOptions& o) { o.router.normalises = true; },
      [](MoeOptions& o) {
        o.router.score = RouterScore::sigmoid;
        o.router.normalises = true;
        o.router.scale = 2.5;
        o.router.top_k = 3;
        o.num_shared_experts = 2;
      },
      [](MoeOptions& o) { o.weighs_inputs = true, o.router.top_k = 1; },
      [](MoeOptions& o) { o.weighs_inputs = true, o.router.score = RouterScore::sigmoid; },
      [](MoeOptions& o) { o.router.balance_rate = 0.1; },
      [](MoeOptions& o) { o.router.keeps_bias = true; }};
  for (size_t kind = 0; kind < kinds.size(); ++kind)
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const MoeOptions options = small(kinds[kind]);
      MixtureOfExperts moe(options);
      give_memory(moe, type);
      if (options.router.is_biased())
        value_of(moe, "expert_bias").copy_(at::tensor({0.4, -0.3, 0.0, 0.2, -0.2}));
      Tensor x = (at::rand({3, 8, kDim}, at::kDouble) - 0.5).to(type).set_requires_grad(true);
      const Tensor of_y = (at::rand(x.sizes(), at::kDouble) - 0.5).to(type);
      const double limit = type == at::kDouble ? 1e-12 : 2e-5;

      const Tensor y = moe(x, Batch()), expected = dense(moe, options, x);
      EXPECT_TRUE(at::allclose(y, expected, limit, limit)) << kind << " " << type;
      y.backward(of_y);
      std::vector<Tensor> gradients = {x.grad().clone()};
      for (Parameter* p : weights_of(moe)) gradients.push_back(p->grad().clone());
      x.mutable_grad() = Tensor();
      for (Parameter* p : weights_of(moe)) p->clear_gradient();
      expected.backward(of_y);
      EXPECT_TRUE(at::allclose(gradients[0], x.grad(), limit, limit)) << kind << " " << type;
      size_t i = 1;
      for (Parameter* p : weights_of(moe))
        EXPECT_TRUE(at::allclose(gradients[i++], p->grad(), limit, limit))
            << kind << " " << type << " " << p->name();
    }
}

TEST(MixtureOfExperts, RunsInSixteenBitsNearFullPrecision) {
  Tensor results[3];
  for (int i : {0, 1, 2}) {  // full, 16 bits, 16 bits with a gate in fp32
    MixtureOfExperts moe(small([&](MoeOptions& o) { o.router.is_float32 = i == 2; }));
    give_memory(moe, i == 0 ? at::kFloat : at::kBFloat16);
    const Tensor x = at::sin(at::arange(2 * 8 * kDim, at::kFloat)).view({2, 8, kDim});
    results[i] = moe(i == 0 ? x : x.to(at::kBFloat16), Batch());
    EXPECT_EQ(results[i].scalar_type(), i == 0 ? at::kFloat : at::kBFloat16);
  }
  const Tensor off = (results[2].to(at::kFloat) - results[0]).abs();
  EXPECT_LT(off.median().item<double>(), 0.05);
  EXPECT_FALSE(at::equal(results[1], results[2])) << "the gate's type changes nothing";
}

Routing route(const RouterOptions& options, const Tensor& logits) {
  RouterOptions own = options;  // with a gate that is the identity
  own.dim = own.num_experts = logits.size(-1);
  own.init = Init::constant(0);
  Router router(own, nullptr);
  give_memory(router, at::kDouble);
  const at::NoGradGuard no_grad;
  for (int64_t i = 0; i < own.dim; ++i) router.gate().weight().value()[i][i] = 1.0;
  return router.route(logits.view({1, -1, logits.size(-1)}), Batch());
}

TEST(Router, WeighsByScoresThatItChoosesBy) {
  const Tensor scores = at::tensor({0.9, 0.8, 0.1, 0.5}, at::kDouble);
  const Routing r =
      route({.top_k = 2, .score = RouterScore::sigmoid, .normalises = true, .scale = 2.5},
            (scores / (1 - scores)).log());
  EXPECT_TRUE(at::equal(r.experts, at::tensor({0, 1}, at::kLong).view({1, 2})));
  EXPECT_TRUE(at::allclose(
      r.weights, at::tensor({2.5 * 0.9 / 1.7, 2.5 * 0.8 / 1.7}, at::kDouble).view({1, 2})));
  EXPECT_TRUE(at::equal(r.counts, at::tensor({1, 1, 0, 0}, at::kLong)));
}

/// The reference's example: a bias of -0.5 on the second of these scores.
TEST(Router, ChoosesByBiasAndWeighsWithoutIt) {
  const auto bias =
      std::make_shared<Parameter>(std::vector<int64_t>{4}, Init::constant(0), at::kFloat);
  bias->set_name("bias");
  bias->materialize(c10::kCPU, at::kFloat, 1);
  bias->value().copy_(at::tensor({0.0, -0.5, 0.0, 0.0}));
  Router router({.dim = 4,
                 .num_experts = 4,
                 .top_k = 2,
                 .score = RouterScore::sigmoid,
                 .normalises = true,
                 .scale = 2.5,
                 .balance_rate = 1e-3,
                 .init = Init::constant(0)},
                bias);
  give_memory(router, at::kDouble);
  const at::NoGradGuard no_grad;
  for (int64_t i = 0; i < 4; ++i) router.gate().weight().value()[i][i] = 1.0;
  const Tensor scores = at::tensor({0.9, 0.8, 0.1, 0.5}, at::kDouble);
  const Routing r = router.route((scores / (1 - scores)).log().view({1, 1, 4}), Batch());
  EXPECT_TRUE(at::equal(r.experts, at::tensor({0, 3}, at::kLong).view({1, 2})));
  EXPECT_TRUE(
      at::allclose(r.weights, at::tensor({1.607143, 0.892857}, at::kDouble).view({1, 2}), 1e-6));
}

TEST(Router, TakesTheFirstOfEqualExperts) {
  Tensor logits = at::zeros({64, 40}, at::kDouble);
  logits.select(1, 17).fill_(1.0);
  const Routing r = route({.top_k = 3}, logits);
  EXPECT_TRUE(at::equal(r.experts, at::tensor({17, 0, 1}, at::kLong).expand({64, 3})));
}

TEST(Router, ForcesEvenLoadInTurn) {
  const Tensor logits = at::rand({10, 4}, at::kDouble);
  const Routing r = route({.top_k = 2, .forces_balance = true}, logits);
  EXPECT_TRUE(at::equal(r.experts.flatten(), at::arange(20).remainder(4)));
  EXPECT_TRUE(at::equal(r.counts, at::tensor({5, 5, 5, 5}, at::kLong)));
  EXPECT_TRUE(at::allclose(r.weights, logits.softmax(-1).gather(1, r.experts)));
}

TEST(Router, RefusesMoreExpertsThanThereAre) {
  const Error error = error_of([] { route({.top_k = 5}, at::zeros({1, 4}, at::kDouble)); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(), "a token cannot go to 5 of 4 experts"));
}

/// The bias of a mixture after one update with the `counts` of each rank. The inputs choose each
/// token's expert.
Tensor moved_bias(const std::vector<int64_t>& counts, double rate, const dist::Mesh& mesh) {
  const int64_t n = static_cast<int64_t>(counts.size());
  MixtureOfExperts moe(small([&](MoeOptions& o) {
    o.router.num_experts = o.router.dim = n;
    o.router.top_k = 1;
    o.router.balance_rate = rate;
    o.router.init = Init::constant(0);
  }));
  give_memory(moe, at::kFloat);
  Router& router = moe.router();
  router.connect(mesh);
  router.begin_run();
  std::vector<int64_t> experts;
  for (int64_t e = 0; e < n; ++e) experts.insert(experts.end(), counts[static_cast<size_t>(e)], e);
  const Tensor x = at::zeros({1, static_cast<int64_t>(experts.size()), n});
  for (size_t t = 0; t < experts.size(); ++t) x[0][static_cast<int64_t>(t)][experts[t]] = 1.0;
  {
    const at::NoGradGuard no_grad;
    for (int64_t i = 0; i < n; ++i) router.gate().weight().value()[i][i] = 10.0;
    moe(at::ones_like(x), Batch());  // validation does not count
  }
  moe(x, Batch());
  router.commit(Step());
  return value_of(moe, "expert_bias").clone();
}

TEST(Router, MovesTheBiasTowardsEvenLoad) {
  const dist::Mesh mesh;
  const auto expect = [&](const std::vector<int64_t>& counts, const std::vector<double>& moved) {
    EXPECT_TRUE(at::allclose(moved_bias(counts, 1e-3, mesh).to(at::kDouble) * 1e3,
                             at::tensor(moved, at::kDouble), 1e-5, 1e-6))
        << moved_bias(counts, 1e-3, mesh);
  };
  expect({10, 0, 5, 1}, {-1, 1, -1, 1});
  expect({4, 4, 5, 3}, {0, 0, -1, 1});
  expect({9, 1, 1, 1}, {-1.5, 0.5, 0.5, 0.5});  // the mean is subtracted
}

TEST(Router, MovesTheBiasByTheTokensOfAllRanks) {
  titan::testing::run_ranks({.dp_shard = 2}, [](const dist::Mesh& mesh) {
    const bool is_first = mesh.group("dp_shard").rank() == 0;
    const std::vector<int64_t> counts =
        is_first ? std::vector<int64_t>{3, 1, 0, 0} : std::vector<int64_t>{0, 0, 1, 3};
    EXPECT_TRUE(at::allclose(moved_bias(counts, 1.0, mesh),
                             at::tensor({-1.0, 1.0, 1.0, -1.0}, at::kFloat)));
  });
}

TEST(Router, AddsTheLossOfUnevenLoad) {
  const RouterOptions options = {
      .dim = 4, .num_experts = 4, .top_k = 2, .balance_loss = 0.25, .init = Init::normal(0, 1)};
  Router router(options, nullptr);
  give_memory(router, at::kDouble);
  const Tensor x = at::rand({2, 6, 4}, at::kDouble) - 0.5;
  Batch batch;
  batch.auxiliary_losses = std::make_shared<AuxiliaryLosses>(0.125);
  const Routing r = router.route(x, batch);
  (r.weights.sum() * 0).backward();
  const Tensor found = router.gate().weight().grad().clone();
  router.gate().weight().clear_gradient();

  const Tensor scores = router(x, Batch());
  Tensor expected = at::zeros({}, at::kDouble);  // equations 17 to 20, token by token
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t e = 0; e < 4; ++e) {
      const Tensor here = r.experts.view({2, 6, 2})[row].eq(e).sum().to(at::kDouble);
      const Tensor share = (scores[row] / scores[row].sum(-1, true)).select(1, e).mean();
      expected = expected + 6 * 0.25 * (4.0 / (2 * 6)) * here * share;
    }
  EXPECT_NEAR(*batch.auxiliary_losses->sum(), expected.item<double>(), 1e-12);
  (expected * 0.125).backward();
  EXPECT_TRUE(at::allclose(found, router.gate().weight().grad(), 1e-10, 1e-12));
}

TEST(Router, RefusesTheLossWhereSequencesAreCut) {
  for (const dist::MeshShape& shape : {dist::MeshShape{.tp = 2}, dist::MeshShape{.cp = 2}})
    titan::testing::run_ranks(shape, [](const dist::Mesh& mesh) {
      Router router({.dim = 4, .num_experts = 4, .balance_loss = 0.1}, nullptr);
      EXPECT_TRUE(holds(error_of([&] { router.connect(mesh); }).what(),
                        "the load balance loss needs whole sequences"));
    });
}

/// Keeps the first routing, and returns it at every later call.
struct Notes final : RecomputeScope {
  std::vector<Tensor> run(const Operation& operation, const Compute& compute) override {
    if (operation.kind != Operation::Kind::routing) return compute();
    if (!kept.defined()) kept = compute()[0];
    return {kept};
  }
  bool runs_again() const override { return is_again; }
  Tensor kept;
  bool is_again = false;
};

TEST(Router, ChoosesAsBeforeWhereItRunsAgain) {
  Router router({.dim = 4, .num_experts = 4, .top_k = 2, .init = Init::normal(0, 1)}, nullptr);
  give_memory(router, at::kFloat);
  const Tensor x = at::rand({1, 9, 4});
  Notes notes;
  const RecomputeScope::Entry entry(&notes);
  const Tensor first = router.route(x, Batch()).experts;
  const Tensor other = router.route(-x, Batch()).experts;  // -x itself chooses others
  EXPECT_TRUE(at::equal(first, other));
}

TEST(MixtureOfExperts, HasOneDispatcher) {
  MixtureOfExperts moe(small());
  give_memory(moe, at::kFloat);
  const Tensor x = at::rand({2, 4, kDim}), expected = moe(x, Batch());
  moe.set_dispatcher("acme", make_local_dispatcher());
  EXPECT_TRUE(at::equal(moe(x, Batch()), expected));
  EXPECT_EQ(moe.computed_by(), "acme dispatches tokens");
  EXPECT_TRUE(holds(error_of([&] { moe.set_dispatcher("other", make_local_dispatcher()); }).what(),
                    "acme"));
}

TEST(MixtureOfExperts, RunsOnTheMetaDevice) {
  MixtureOfExperts moe(small([](MoeOptions& o) {
    o.router.balance_rate = 1e-3;
    o.num_shared_experts = 1;
  }));
  moe.set_names("m");
  const Tensor x = at::rand({2, 4, kDim}).to(c10::kMeta).set_requires_grad(true);
  const Tensor y = moe(x, Batch());
  EXPECT_EQ(y.sizes(), x.sizes());
  y.backward(at::ones_like(y));
  EXPECT_EQ(x.grad().sizes(), x.sizes());
}

}  // namespace
}  // namespace titan::nn::moe_test
