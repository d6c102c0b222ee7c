// LoRA in models with stacked experts: adapted layers expert by expert against ATen's own autograd,
// merging, and the same results when ranks distribute or shard the experts.
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <titan/nn/grouped_linear.h>

#include "tests/plugins/converters/adapted_fixture.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/expert_fixture.h"

namespace titan::lora_test::lora_experts_test {
namespace {

using namespace titan::testing;

std::vector<Layer> mixtral_layers() {
  const Value options = Value::map({{"dim", 24},
                                    {"n_layers", 2},
                                    {"n_heads", 4},
                                    {"n_kv_heads", 2},
                                    {"vocab_size", kVocab},
                                    {"hidden_dim", 20},
                                    {"num_experts", 4}});
  return create<Model>("mixtral", options, {.seq_len = kSeqLen})->build();
}

const Value kExpertTargets = lora_options({"experts", "wq"});

TEST(LoraExperts, HaveAScaledProductOfTwoSmallMatricesEach) {
  const std::vector<int64_t> rows = {3, 0, 5, 1};
  std::vector<Layer> layers;
  layers.push_back({.name = "experts",
                    .module = std::make_unique<nn::GroupedLinear>(4, 7, 5, nn::Init::normal(0, 1)),
                    .parameter_prefix = "experts"});
  const dist::Mesh mesh;
  Adapted adapted(std::move(layers), mesh, lora_options({"experts"}));
  auto& layer = dynamic_cast<nn::GroupedLinear&>(*adapted.part.layers()[0].module);
  EXPECT_EQ(layer.computed_by(), "lora around it");
  const auto leaf = [&](const std::string& name) {
    return adapted.parameter(name).shard().detach().clone().requires_grad_();
  };
  const at::Tensor w = leaf("experts.weight"), a = leaf("experts.lora_a.weight"),
                   b = leaf("experts.lora_b.weight");
  EXPECT_EQ(a.sizes(), (at::IntArrayRef{4, 3, 7}));
  EXPECT_EQ(b.sizes(), (at::IntArrayRef{4, 5, 3}));

  const at::Tensor x = at::randn({9, 7}, at::kDouble).requires_grad_();
  const at::Tensor y = layer(x, rows);
  const at::Tensor plain_x = x.detach().clone().requires_grad_();
  std::vector<at::Tensor> parts;
  int64_t first = 0;
  for (int64_t e = 0; e < 4; ++e) {
    const at::Tensor own = plain_x.narrow(0, first, rows[static_cast<size_t>(e)]);
    parts.push_back(own.matmul(w[e].t()) + own.matmul(a[e].t()).matmul(b[e].t()) * (6.0 / 3.0));
    first += own.size(0);
  }
  const at::Tensor plain = at::cat(parts);
  EXPECT_LT(relative_error(y, plain, plain), 1e-14);
  const at::Tensor direction = at::randn_like(plain);
  (y * direction).sum().backward();
  (plain * direction).sum().backward();
  EXPECT_LT(relative_error(x.grad(), plain_x.grad(), plain_x.grad()), 1e-14);
  for (const auto& [name, expected] :
       {std::pair{"experts.lora_a.weight", a.grad()}, std::pair{"experts.lora_b.weight", b.grad()}})
    EXPECT_LT(relative_error(adapted.parameter(name).grad(), expected, expected), 1e-14) << name;
  EXPECT_FALSE(adapted.parameter("experts.weight").grad().defined());
}

TEST(LoraExperts, StartFromTheBaseAndTrainNothingElse) {
  const dist::Mesh mesh;
  Adapted adapted(mixtral_layers(), mesh, kExpertTargets);
  for (nn::Parameter* p : adapted.part.parameters())
    if (p->name().ends_with(".lora_b.weight")) p->shard().detach().zero_();
  Replica base(mixtral_layers(), mesh, "", Value::map(), at::kDouble);
  EXPECT_NEAR(adapted.run_step({make_rows(0, 4)}), base.run_step({make_rows(0, 4)}), 1e-13);
  size_t num_adapters = 0;
  for (nn::Parameter* p : adapted.part.parameters()) {
    num_adapters += is_adapter(p->name());
    EXPECT_EQ(p->is_frozen(), !is_adapter(p->name())) << p->name();
  }
  EXPECT_EQ(num_adapters, 2 * 2 * 4u);  // A and B in two blocks of w1, w2, w3 and wq
  EXPECT_EQ(adapted.parameter("layers.1.moe.experts.w2.lora_a.weight").global_shape(),
            (std::vector<int64_t>{4, 3, 20}));
}

TEST(LoraExperts, AreMergedEachIntoItsOwnBase) {
  const dist::Mesh mesh;
  Adapted adapted(mixtral_layers(), mesh, lora_options({"layers.1.moe.experts.w2"}));
  auto& merges = dynamic_cast<ExportTransform&>(*adapted.lora);
  const std::string layer = "layers.1.moe.experts.w2";
  const auto value = [&](const std::string& name) {
    return adapted.parameter(name).shard().detach();
  };
  const at::Tensor expected =
      value(layer) + value(layer + ".lora_b.weight").matmul(value(layer + ".lora_a.weight")) * 2.0;
  EXPECT_LT(relative_error(merges.exported(adapted.parameter(layer)), expected, expected), 1e-14);
  EXPECT_FALSE(at::equal(expected, value(layer)));
  const std::string other = "layers.0.moe.experts.w2";
  EXPECT_TRUE(at::equal(merges.exported(adapted.parameter(other)), value(other)));
  EXPECT_TRUE(merges.is_absorbed(layer + ".lora_a.weight"));
  EXPECT_FALSE(merges.is_absorbed(layer));
}

struct ExpertLayout {
  dist::MeshShape shape;
  int64_t degree;
  std::vector<std::pair<std::string, Value>> parallelisms;

  std::string text() const {
    return "shard " + std::to_string(shape.dp_shard) + ", tp " + std::to_string(shape.tp) +
           ", ep " + std::to_string(degree) + ": ";
  }
};

std::vector<ExpertLayout> expert_layouts() {
  const Value none = Value::map(), same = Value::map({{"sequence_parallel", false}});
  const std::pair<std::string, Value> fsdp = {"fsdp", none};
  const std::pair<std::string, Value> dealt = {"expert", Value::map({{"degree", 2}})};
  const std::pair<std::string, Value> dealt_to_4 = {"expert", Value::map({{"degree", 4}})};
  return {{{.dp_shard = 2}, 1, {fsdp}},
          {{.dp_shard = 4}, 1, {fsdp}},
          {{.dp_shard = 2}, 2, {dealt, fsdp}},
          {{.dp_shard = 4}, 2, {dealt, fsdp}},
          {{.dp_shard = 4}, 4, {dealt_to_4, fsdp}},
          {{.tp = 2}, 1, {{"tensor", none}}},
          {{.tp = 2}, 2, {{"tensor", none}, dealt}},
          {{.tp = 2}, 2, {{"tensor", same}, dealt}},
          {{.dp_shard = 2, .tp = 2}, 4, {{"tensor", none}, dealt_to_4, fsdp}}};
}

TEST(LoraExperts, TrainAsOnOneRankWhereverTheyAre) {
  open_plugins();
  const dist::Mesh one;
  {  // opens the plugins that the ranks use
    Adapted opens(llama_layers(false), one, lora_options({"wq"}), {{"tensor", Value::map()}});
  }
  Adapted whole(mixtral_layers(), one, kExpertTargets);
  const auto whole_adamw = whole.make_adamw();
  std::vector<std::map<std::string, at::Tensor>> gradients;
  double whole_loss = 0;
  for (int step = 0; step < 2; ++step) {
    whole_loss = whole.run_step({make_rows(0, 8)});
    std::map<std::string, at::Tensor>& of_step = gradients.emplace_back();
    for (nn::Parameter* p : whole.part.parameters())
      if (!p->is_frozen()) of_step[p->name()] = p->grad().clone();
    whole_adamw->step(1);
    whole.part.clear_gradients();
  }
  auto& merges = dynamic_cast<ExportTransform&>(*whole.lora);
  for (const ExpertLayout& layout : expert_layouts())
    run_ranks(expert_test::expert_grid(layout.shape, layout.degree), [&](const dist::Mesh& mesh) {
      const int64_t num_ranks = mesh.grid().batch();
      Adapted rank(mixtral_layers(), mesh, kExpertTargets, layout.parallelisms);
      const auto adamw = rank.make_adamw();
      double loss = 0;
      for (int step = 0; step < 2; ++step) {
        loss = rank.run_step(own_microbatches(mesh, 4 / num_ranks, 2));
        for (nn::Parameter* p : rank.part.parameters()) {
          if (p->is_frozen()) {
            EXPECT_FALSE(p->grad().defined()) << layout.text() << p->name();
            continue;
          }
          const at::Tensor& expected = gradients[static_cast<size_t>(step)].at(p->name());
          EXPECT_LT(relative_error(p->grad(), slice_of(expected, p->slice()), expected), 1e-11)
              << layout.text() << "step " << step << ": " << p->name();
        }
        adamw->step(1);
        rank.part.clear_gradients();
      }
      EXPECT_NEAR(mesh.group("dp").all_reduce(loss, dist::Reduce::sum) / whole_loss, 1, 1e-12)
          << layout.text();
      auto& rank_merges = dynamic_cast<ExportTransform&>(*rank.lora);
      for (nn::Parameter* p : rank.part.parameters()) {
        EXPECT_EQ(rank_merges.is_absorbed(p->name()), is_adapter(p->name())) << p->name();
        if (is_adapter(p->name())) continue;
        const at::Tensor found = rank_merges.exported(*p);
        static std::mutex mutex;  // all ranks share the whole model
        const std::lock_guard lock(mutex);
        const at::Tensor expected = merges.exported(whole.parameter(p->name()));
        EXPECT_LT(relative_error(found, slice_of(expected, p->slice()), expected), 1e-10)
            << layout.text() << p->name();
      }
    });
}

TEST(LoraExperts, AreNotCutEach) {
  open_plugins();
  run_ranks(expert_test::expert_grid({.tp = 2}, 1, 2), [&](const dist::Mesh& mesh) {
    const Error error = error_of([&] {
      Adapted(mixtral_layers(), mesh, kExpertTargets,
              {{"expert", Value::map({{"degree", 1}, {"tensor_degree", 2}})}});
    });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_TRUE(holds(error.what(),
                      "the experts of 'layers.0.moe' have 'layers.0.moe.experts.w1.lora_a.weight', "
                      "which cannot be cut with an expert"));
  });
}

}  // namespace
}  // namespace titan::lora_test::lora_experts_test
