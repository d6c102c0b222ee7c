// Muon on stacks of experts: each matrix is updated as if it were separate, for any sharding.
// tests/referee/optimizer_referee.py compares many steps.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>

#include "plugins/optimizers/muon/newton_schulz.h"
#include "tests/plugins/optimizers/optimizer_fixture.h"
#include "tests/sdk/dist/thread_ranks.h"
#include "tests/sdk/nn/slices.h"

namespace titan {
namespace {

using namespace titan::testing;

constexpr int64_t kStack = 5;

struct StackForm {
  std::string name;
  std::vector<int64_t> shape;
};
const std::vector<StackForm> kStacks = {{"layers.0.moe.experts.w1", {kStack, 12, 20}},
                                        {"layers.0.moe.experts.w2", {kStack, 20, 12}}};

std::unique_ptr<Parameter> stack_of(const StackForm& form) {
  auto p = std::make_unique<Parameter>(form.shape, nn::Init::normal(0, 0.1));
  p->set_name(form.name);
  return p;
}

/// Values of expert e of the stack `name`, different for all experts and steps.
at::Tensor expert_gradient(const StackForm& form, int64_t expert, int step) {
  const int64_t count = form.shape[1] * form.shape[2];
  const at::Tensor place =
      at::arange(count).to(at::kFloat) + static_cast<double>(expert * 37 + form.shape[1]);
  return at::sin(place * (1.7 + 0.3 * step) + place * place * 0.01)
      .view({form.shape[1], form.shape[2]});
}

at::Tensor stack_gradient(const StackForm& form, int step) {
  std::vector<at::Tensor> experts;
  for (int64_t e = 0; e < form.shape[0]; ++e) experts.push_back(expert_gradient(form, e, step));
  return at::stack(experts);
}

/// Weight and momentum of a stack, or of this rank's shard.
struct StackState {
  nn::Slice slice;
  at::Tensor weight, momentum;
};

using MuonSettings = std::vector<Value::Member>;

Value muon_options(const MuonSettings& settings) {
  Value options = Value::map({{"lr", 0.02}});
  for (const auto& [name, value] : settings) options[name] = value;
  return options;
}

/// `cut` shards each stack before it gets memory.
template <class Cut>
std::map<std::string, StackState> run_stacks(const dist::Mesh& mesh, const MuonSettings& settings,
                                             const Cut& cut) {
  std::vector<std::unique_ptr<Parameter>> stacks;
  std::vector<Parameter*> all;
  for (const StackForm& form : kStacks) {
    stacks.push_back(stack_of(form));
    cut(*stacks.back());
    stacks.back()->materialize(c10::kCPU, at::kFloat, 5);
    all.push_back(stacks.back().get());
  }
  const auto muon =
      create<Optimizer>("Muon", muon_options(settings), {.parameters = all, .mesh = &mesh});
  for (int step = 0; step < 3; ++step) {
    for (size_t i = 0; i < all.size(); ++i)
      all[i]->shard().mutable_grad() =
          slice_of(stack_gradient(kStacks[i], step), all[i]->slice()).contiguous();
    muon->step(1.0 / (1 + step));
  }
  const auto states = state_of(*muon);
  std::map<std::string, StackState> found;
  for (const Parameter* p : all)
    found[p->name()] = {p->slice(), p->shard().detach().clone(),
                        states.at(p->name() + "/momentum_buffer")};
  return found;
}

const std::vector<MuonSettings> kSettings = {
    {{"ns_dtype", "bfloat16"}},
    {{"ns_dtype", "float32"}, {"nesterov", false}},
    {{"ns_dtype", "float32"}, {"adjust_lr", "match_rms_adamw"}}};

TEST(MuonStacks, MoveEachExpertAsAMatrixOfItsOwn) {
  at::set_num_threads(1);
  for (const MuonSettings& settings : kSettings) {
    const auto stacks = run_stacks(dist::Mesh(), settings, [](Parameter&) {});
    for (const StackForm& form : kStacks) {
      const StackState& found = stacks.at(form.name);
      const auto start = stack_of(form);
      start->materialize(c10::kCPU, at::kFloat, 5);
      for (int64_t e = 0; e < kStack; ++e) {
        Parameter matrix({form.shape[1], form.shape[2]}, nn::Init::constant(0));
        matrix.set_name("matrix");
        matrix.materialize(c10::kCPU, at::kFloat, 5);
        matrix.shard().detach().copy_(start->shard().detach()[e]);
        const auto muon =
            create<Optimizer>("Muon", muon_options(settings), {.parameters = {&matrix}});
        for (int step = 0; step < 3; ++step) {
          matrix.shard().mutable_grad() = expert_gradient(form, e, step);
          muon->step(1.0 / (1 + step));
        }
        EXPECT_TRUE(at::equal(found.weight[e], matrix.shard().detach())) << form.name << e;
        EXPECT_TRUE(at::equal(found.momentum[e], state_of(*muon).at("matrix/momentum_buffer")))
            << form.name << e;
        EXPECT_FALSE(at::equal(found.weight[e], start->shard().detach()[e]));
      }
    }
  }
}

TEST(MuonStacks, AreUpdatedAsOnOneRankWhoeverHoldsAPart) {
  at::set_num_threads(1);
  struct Way {
    const char* name;
    dist::MeshShape shape;
    std::vector<std::pair<int64_t, const char*>> cuts;  // sharded dimensions and their groups
  };
  const std::vector<Way> ways = {
      {"experts over 2", {.dp_shard = 2}, {{0, "fsdp"}}},
      {"experts over 4, of which one has none", {.dp_shard = 4}, {{0, "fsdp"}}},
      {"rows over 2", {.dp_shard = 2}, {{1, "fsdp"}}},
      {"columns over 2", {.tp = 2}, {{2, "tp"}}},
      {"rows over 2, then experts over 2", {.dp_shard = 2, .tp = 2}, {{1, "tp"}, {0, "fsdp"}}},
      {"columns over 2, then rows over 2", {.dp_shard = 2, .tp = 2}, {{2, "tp"}, {1, "fsdp"}}},
      {"replicas", {.dp_replicate = 2, .dp_shard = 2}, {{0, "fsdp"}}}};
  for (const MuonSettings& settings : kSettings) {
    const auto alone = run_stacks(dist::Mesh(), settings, [](Parameter&) {});
    for (const Way& way : ways)
      run_ranks(way.shape, [&](const dist::Mesh& mesh) {
        const auto here = run_stacks(mesh, settings, [&](Parameter& p) {
          for (const auto& [dim, group] : way.cuts) p.shard_over(dim, mesh.group(group));
        });
        for (const auto& [name, found] : here) {
          const StackState& whole = alone.at(name);
          EXPECT_TRUE(at::equal(found.weight, slice_of(whole.weight, found.slice)))
              << name << ": " << way.name;
          EXPECT_TRUE(at::equal(found.momentum, slice_of(whole.momentum, found.slice)))
              << name << ": " << way.name;
        }
      });
  }
}

TEST(MuonStacks, SendNothingWhereExpertsAreWhole) {
  run_ranks({.dp_shard = 2}, [&](const dist::Mesh& mesh) {
    run_stacks(mesh, {}, [&](Parameter& p) { p.shard_over(0, mesh.group("fsdp")); });
    EXPECT_EQ(mesh.recorder().traffic().size(), 0u);
  });
}

TEST(MuonStacks, LeaveBiasesOfExpertsToAdamW) {
  Parameter bias({kStack, 12}, nn::Init::constant(0));
  bias.set_name("layers.0.moe.experts.w1_bias");
  bias.materialize(c10::kCPU, at::kFloat, 1);
  const auto muon = optimizer("Muon", {}, {&bias});
  EXPECT_EQ(state_of(*muon).count("layers.0.moe.experts.w1_bias/exp_avg_sq"), 1u);
}

TEST(MuonStacks, InBatchedProductsAreTheMatricesUpToRounding) {
  for (const StackForm& form : kStacks) {
    const at::Tensor stack = stack_gradient(form, 0);
    const at::Tensor batched = muon::orthogonalize_at_once(stack, {});
    const at::Tensor each = muon::orthogonalize_each(stack, {});
    EXPECT_LT(((batched - each).norm() / each.norm()).item<double>(), 1e-5) << form.name;
    for (int64_t e = 0; e < kStack; ++e)
      EXPECT_TRUE(at::equal(each[e], muon::orthogonalize(stack[e], {}))) << form.name << e;
  }
}

}  // namespace
}  // namespace titan
