// The LoRA converter: the results of an adapted layer, the trained parameters, merging, and the
// same results when ranks shard the model.
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <titan/nn/linear.h>

#include "tests/plugins/converters/adapted_fixture.h"
#include "tests/plugins/error_of.h"

namespace titan::lora_test {
namespace {

using namespace titan::testing;

constexpr double kRounding = 1e-12;

using lora_test::Adapted;
using lora_test::is_adapter;
using lora_test::lora_options;

const Value kAllTargets = lora_options({"wq", "wv", "wo", "feed_forward"});

TEST(Lora, AddsAScaledProductOfTwoSmallMatricesToALinearLayer) {
  std::vector<Layer> layers;
  layers.push_back({.name = "proj",
                    .module = std::make_unique<nn::Linear>(7, 5, nn::WeightLayout::replicated,
                                                           nn::Init::normal(0, 1)),
                    .parameter_prefix = "proj"});
  const dist::Mesh mesh;
  Adapted adapted(std::move(layers), mesh, lora_options({"proj"}));
  const auto leaf = [&](const std::string& name) {
    return adapted.parameter(name).shard().detach().clone().requires_grad_();
  };
  const at::Tensor w = leaf("proj.weight"), a = leaf("proj.lora_a.weight"),
                   b = leaf("proj.lora_b.weight");
  EXPECT_EQ(a.sizes(), (at::IntArrayRef{3, 7}));
  EXPECT_EQ(b.sizes(), (at::IntArrayRef{5, 3}));

  const at::Tensor x = at::randn({2, 4, 7}, at::kDouble).requires_grad_();
  const at::Tensor y = adapted.part.forward(x, Batch());
  const at::Tensor plain_x = x.detach().clone().requires_grad_();
  const at::Tensor plain =
      plain_x.matmul(w.t()) + plain_x.matmul(a.t()).matmul(b.t()) * (6.0 / 3.0);
  EXPECT_LT(relative_error(y, plain, plain), 1e-14);
  const at::Tensor direction = at::randn_like(plain);
  (y * direction).sum().backward();
  (plain * direction).sum().backward();
  EXPECT_LT(relative_error(x.grad(), plain_x.grad(), plain_x.grad()), 1e-14);
  const auto gradient_error = [&](const std::string& name, const at::Tensor& expected) {
    return relative_error(adapted.parameter(name).grad(), expected, expected);
  };
  EXPECT_LT(gradient_error("proj.lora_a.weight", a.grad()), 1e-14);
  EXPECT_LT(gradient_error("proj.lora_b.weight", b.grad()), 1e-14);
  EXPECT_FALSE(adapted.parameter("proj.weight").grad().defined());
}

TEST(Lora, StartsFromTheBaseAndTrainsNothingElse) {
  const dist::Mesh mesh;
  Adapted adapted(llama_layers(true), mesh, kAllTargets);
  for (nn::Parameter* p : adapted.part.parameters())
    if (p->name().ends_with(".lora_b.weight")) p->shard().detach().zero_();
  Replica base(llama_layers(true), mesh, "", Value::map(), at::kDouble);
  const std::vector<Batch> batches = {make_rows(0, 4)};
  EXPECT_NEAR(adapted.run_step(batches), base.run_step(batches), 1e-13);

  std::map<std::string, at::Tensor> before;
  for (nn::Parameter* p : adapted.part.parameters())
    before[p->name()] = p->shard().detach().clone();
  const auto adamw = adapted.make_adamw();
  for (int step = 0; step < 2; ++step) {
    adamw->step(1);
    adapted.part.clear_gradients();
    adapted.run_step(batches);
  }
  size_t num_adapters = 0;
  for (nn::Parameter* p : adapted.part.parameters()) {
    num_adapters += is_adapter(p->name());
    EXPECT_EQ(p->is_frozen(), !is_adapter(p->name())) << p->name();
    EXPECT_EQ(at::equal(p->shard(), before.at(p->name())), p->is_frozen()) << p->name();
  }
  EXPECT_EQ(num_adapters, 2 * 2 * 6u);  // A and B in two blocks of wq, wv, wo, w1, w2, w3
}

struct Layout {
  dist::MeshShape shape;
  std::vector<std::pair<std::string, Value>> parallelisms;
  bool is_tied = false;
};

std::vector<Layout> layouts() {
  const Value none = Value::map();
  const auto reshard = [](const char* when) {
    return Value::map({{"reshard_after_forward", when}});
  };
  return {{{.dp_shard = 2}, {{"fsdp", reshard("default")}}},
          {{.dp_shard = 2}, {{"fsdp", reshard("default")}}, true},
          {{.dp_shard = 2}, {{"fsdp", reshard("always")}}},
          {{.dp_shard = 2}, {{"fsdp", reshard("never")}}, true},
          {{.dp_shard = 4}, {{"fsdp", Value::map({{"sum_each_microbatch", true}})}}},
          {{.dp_replicate = 2, .dp_shard = 2}, {{"fsdp", none}}},
          {{.dp_replicate = 2}, {{"ddp", none}}},
          {{.tp = 2}, {{"tensor", none}}},
          {{.tp = 2}, {{"tensor", Value::map({{"sequence_parallel", false}})}}, true},
          {{.dp_shard = 2, .tp = 2}, {{"tensor", none}, {"fsdp", none}}}};
}

TEST(Lora, TrainsAsOneRankUnderEveryLayout) {
  open_plugins();
  const dist::Mesh one;
  {  // opens the plugins that the ranks use
    Adapted opens(llama_layers(false), one, kAllTargets, {{"tensor", Value::map()}});
  }
  for (const bool is_tied : {false, true}) {
    Adapted whole(llama_layers(is_tied), one, kAllTargets);
    const auto whole_adamw = whole.make_adamw();
    std::vector<std::map<std::string, at::Tensor>> gradients;
    const std::vector<Batch> all = {make_rows(0, 8)};
    double whole_loss = 0;
    for (int step = 0; step < 2; ++step) {
      whole_loss = whole.run_step(all);
      std::map<std::string, at::Tensor>& of_step = gradients.emplace_back();
      for (nn::Parameter* p : whole.part.parameters())
        if (!p->is_frozen()) of_step[p->name()] = p->grad().clone();
      whole_adamw->step(1);
      whole.part.clear_gradients();
    }
    auto& merges = dynamic_cast<ExportTransform&>(*whole.lora);
    for (const Layout& layout : layouts()) {
      if (layout.is_tied != is_tied) continue;
      run_ranks(layout.shape, [&](const dist::Mesh& mesh) {
        const int64_t num_ranks = mesh.grid().batch();
        const std::string what = layout.parallelisms.back().first + " over " +
                                 std::to_string(num_ranks) + ", tp " +
                                 std::to_string(mesh.grid().size("tp"));
        Adapted rank(llama_layers(is_tied), mesh, kAllTargets, layout.parallelisms);
        const auto adamw = rank.make_adamw();
        double loss = 0;
        for (int step = 0; step < 2; ++step) {
          loss = rank.run_step(own_microbatches(mesh, 4 / num_ranks, 2));
          for (nn::Parameter* p : rank.part.parameters()) {
            if (p->is_frozen()) {
              EXPECT_FALSE(p->grad().defined()) << what << ": " << p->name();
              continue;
            }
            const at::Tensor& expected = gradients[step].at(p->name());
            EXPECT_LT(relative_error(p->grad(), slice_of(expected, p->slice()), expected),
                      kRounding)
                << what << ", step " << step << ": " << p->name();
          }
          adamw->step(1);
          rank.part.clear_gradients();
        }
        const double sum = mesh.group("dp").all_reduce(loss, dist::Reduce::sum);
        EXPECT_NEAR(sum / whole_loss, 1, kRounding) << what;
        auto& rank_merges = dynamic_cast<ExportTransform&>(*rank.lora);
        for (nn::Parameter* p : rank.part.parameters()) {
          EXPECT_EQ(rank_merges.is_absorbed(p->name()), is_adapter(p->name())) << p->name();
          if (is_adapter(p->name())) continue;
          const at::Tensor found = rank_merges.exported(*p);
          static std::mutex mutex;  // all ranks share the whole model
          const std::lock_guard lock(mutex);
          const at::Tensor expected = merges.exported(whole.parameter(p->name()));
          EXPECT_LT(relative_error(found, slice_of(expected, p->slice()), expected), 1e-10)
              << what << ": " << p->name();
        }
      });
    }
  }
}

TEST(Lora, MergesAdaptersIntoTheirBase) {
  const dist::Mesh mesh;
  Adapted adapted(llama_layers(false), mesh, lora_options({"layers.1.attention.wk"}));
  auto& merges = dynamic_cast<ExportTransform&>(*adapted.lora);
  const std::string layer = "layers.1.attention.wk";
  const auto value = [&](const std::string& name) {
    return adapted.parameter(name).shard().detach();
  };
  const at::Tensor expected =
      value(layer + ".weight") +
      value(layer + ".lora_b.weight").matmul(value(layer + ".lora_a.weight")) * 2.0;
  EXPECT_LT(
      relative_error(merges.exported(adapted.parameter(layer + ".weight")), expected, expected),
      1e-14);
  EXPECT_FALSE(at::equal(expected, value(layer + ".weight")));
  const std::string other = "layers.0.attention.wk.weight";
  EXPECT_TRUE(at::equal(merges.exported(adapted.parameter(other)), value(other)));
  EXPECT_TRUE(merges.is_absorbed(layer + ".lora_a.weight"));
  EXPECT_FALSE(merges.is_absorbed(layer + ".weight"));
  EXPECT_EQ(adapted.part.all_parameters().size(), adapted.part.parameters().size());
}

TEST(Lora, RefusesTargetsThatAreNotThere) {
  const dist::Mesh mesh;
  const auto apply = [&](std::initializer_list<Value> targets) {
    return error_of([&] { Adapted(llama_layers(false), mesh, lora_options(targets)); });
  };
  const Error error = apply({"wq", "wx", "attn"});
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(),
                    "no linear layer of the model is named 'wx', 'attn'; there are "
                    "'wq', 'wk', 'wv', 'wo', 'w1', 'w2', 'w3'"));
  EXPECT_TRUE(holds(apply({}).what(), "converter.lora.targets is empty"));
}

}  // namespace
}  // namespace titan::lora_test
