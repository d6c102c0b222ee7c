// States of modules: saved and exchanged like weights, but neither trained nor changed by plugins.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <titan/model.h>
#include <titan/nn/module.h>

#include "core/checkpoint/state.h"
#include "core/checkpoint/writer.h"
#include "core/exchange/hf_export.h"
#include "core/exchange/weight_names.h"
#include "core/train/optimizer/optimizer_set.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"
#include "tests/sdk/nn/fake_group.h"

namespace titan::nn {
namespace {

using titan::testing::error_of;
using titan::testing::fake_group;
using titan::testing::holds;

/// x + bias, and a weight.
class Biased final : public Module {
 public:
  Biased()
      : weight_(add_parameter("weight", {4, 3}, Init::constant(1))),
        bias_(add_state("bias", {3}, Init::constant(0.5))) {}
  Parameter& weight() { return weight_; }
  Parameter& bias() { return bias_; }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x + bias_.value(); }

 private:
  Parameter& weight_;
  Parameter& bias_;
};

ModelPart biased_part() {
  std::vector<Layer> layers;
  layers.push_back({"layer", std::make_unique<Biased>(), "layer"});
  return ModelPart(std::move(layers));
}

TEST(ModuleState, HasItsOwnTypeAndNoGradientWhateverTheRunIs) {
  for (const at::ScalarType dtype : {at::kDouble, at::kBFloat16}) {
    ModelPart part = biased_part();
    part.materialize(c10::kCPU, dtype, 1);
    const Parameter &weight = *part.parameters()[0], &bias = *part.parameters()[1];
    EXPECT_EQ(weight.value().scalar_type(), dtype);
    EXPECT_EQ(bias.name(), "layer.bias");
    EXPECT_EQ(bias.value().scalar_type(), at::kFloat);
    EXPECT_EQ(bias.value()[0].item<float>(), 0.5f);
    EXPECT_TRUE(weight.value().requires_grad());
    EXPECT_FALSE(bias.value().requires_grad());
  }
}

TEST(ModuleState, IsNoParameterOfTheModel) {
  ModelPart part = biased_part();
  EXPECT_EQ(part.num_parameters(), 12);
  ASSERT_EQ(part.all_parameters().size(), 2u);
  EXPECT_FALSE(part.all_parameters()[0].is_state());
  EXPECT_EQ(part.all_parameters()[1].own_dtype, at::kFloat);
  core::JobConfig config;
  config.optimizer_groups.push_back({.name = "none", .patterns = {"*.bias"}, .optimizer = {}});
  EXPECT_TRUE(holds(error_of([&] { core::check_groups(config, part.all_parameters()); }).message(),
                    "no parameter of the model has a name like '*.bias'"));
}

TEST(ModuleState, IsNeitherCutNorLeftToAnybody) {
  Biased layer;
  layer.set_names("layer");
  layer.leave_to("a plugin");  // only the weight
  EXPECT_EQ(layer.weight().owner(), "a plugin");
  const Error cut = error_of([&] { layer.bias().shard_over(0, fake_group(0, 2)); });
  EXPECT_EQ(cut.kind(), ErrorKind::plugin);
  EXPECT_TRUE(holds(cut.message(), "'layer.bias' is state of a module"));
  EXPECT_TRUE(holds(error_of([&] { layer.bias().leave_to("a plugin"); }).message(),
                    "parameter 'layer.bias' is owned by the module that declares it already"));
}

TEST(ModuleState, IsStoredInItsOwnTypeWhateverWeightsBecome) {
  ModelPart part = biased_part();
  part.materialize(c10::kCPU, at::kFloat, 1);
  const auto files = core::plan_files(core::weights_of(part), "weights", 0, at::kBFloat16);
  ASSERT_EQ(files.size(), 1u);
  for (const auto& entry : files[0].entries)
    EXPECT_EQ(entry.dtype, entry.name == "layer.bias" ? "F32" : "BF16") << entry.name;
}

/// Has a name rule for the weight, and for the state if `names_state`.
struct NamedBiased final : Model, HfExchange {
  explicit NamedBiased(bool names_state) : names_state(names_state) {}
  std::vector<Layer> build() const override { return {}; }
  Flops flops_per_token(int64_t) const override { return {}; }
  bool isolates_documents() const override { return false; }
  int64_t vocab_size() const override { return 1; }
  std::vector<NameRule> name_rules(Naming) const override {
    std::vector<NameRule> rules = {{"layer.weight", "theirs.weight"}};
    if (names_state) rules.push_back({"layer.bias", "theirs.bias"});
    return rules;
  }
  Value hf_config() const override { return {}; }
  std::vector<std::string> config_differences(const Value&) const override { return {}; }
  bool names_state;
};

TensorIndex index_of(const std::vector<std::pair<std::string, std::vector<int64_t>>>& all) {
  TensorIndex index;
  for (const auto& [name, shape] : all)
    index.tensors[name] = {.dtype = "F32", .shape = shape, .pieces = {}};
  return index;
}

TEST(ModuleState, MayBeMissingAmongTheWeightsOfOthers) {
  const ModelPart part = biased_part();
  const auto found_in = [&](const NamedBiased& model, const TensorIndex& index) {
    core::WeightNames names = core::names_of(model, "biased", Naming::hugging_face);
    names.optional = core::missing_states(part, names, index);
    return core::find_weights(part, names, index, "a folder", "biased");
  };
  const TensorIndex without = index_of({{"theirs.weight", {4, 3}}});
  const TensorIndex with = index_of({{"theirs.weight", {4, 3}}, {"theirs.bias", {3}}});
  EXPECT_EQ(found_in(NamedBiased(false), without).size(), 1u);
  EXPECT_EQ(found_in(NamedBiased(true), without).size(), 1u);
  ASSERT_EQ(found_in(NamedBiased(true), with).size(), 2u);
  EXPECT_EQ(found_in(NamedBiased(true), with)[1].own_dtype, "F32");
  EXPECT_TRUE(holds(error_of([&] { found_in(NamedBiased(false), index_of({})); }).message(),
                    "missing:\n    theirs.weight (layer.weight)"));
}

TEST(ModuleState, LeavesForOthersInItsOwnTypeOrNotAtAll) {
  const ModelPart part = biased_part();
  const TensorIndex index = index_of({{"layer.weight", {4, 3}}, {"layer.bias", {3}}});
  const auto weights = core::find_weights(part, core::own_names(part), index, "a folder", "biased");
  const auto planned = [&](bool names_state) {
    std::vector<std::string> lines;
    for (const auto& tensor :
         core::hf_tensors(NamedBiased(names_state), "biased", weights, index, "BF16"))
      lines.push_back(tensor.entry.name + " " + tensor.entry.dtype);
    return lines;
  };
  EXPECT_EQ(planned(true), (std::vector<std::string>{"theirs.weight BF16", "theirs.bias F32"}));
  EXPECT_EQ(planned(false), (std::vector<std::string>{"theirs.weight BF16"}));
}

TEST(ModuleState, IsLeftAloneByDataParallelism) {
  testing::open_plugins();
  for (const char* transform : {"fsdp", "ddp"})
    testing::run_ranks({.dp_replicate = transform == std::string("ddp") ? 2 : 1,
                        .dp_shard = transform == std::string("ddp") ? 1 : 2},
                       [&](const dist::Mesh& mesh) {
                         std::vector<Layer> layers = testing::llama_layers(false);
                         layers[1].module->attach("beside", std::make_unique<Biased>());
                         const Parameter* bias = nullptr;
                         testing::Replica replica(std::move(layers), mesh, transform,
                                                  transform == std::string("fsdp")
                                                      ? Value::map({{"param_dtype", "bfloat16"}})
                                                      : Value::map(),
                                                  at::kFloat, [&](ModelPart& part) {
                                                    part.refresh();
                                                    for (const Parameter* p : part.parameters())
                                                      if (p->is_state()) bias = p;
                                                  });
                         ASSERT_NE(bias, nullptr);
                         EXPECT_TRUE(bias->shard().is_same(bias->value())) << transform;
                         EXPECT_EQ(bias->value().scalar_type(), at::kFloat);
                         EXPECT_EQ(bias->value().sizes(), at::IntArrayRef({3}));
                         EXPECT_EQ(bias->value()[2].item<float>(), 0.5f);
                         EXPECT_TRUE(bias->shardings().empty());
                       });
}

}  // namespace
}  // namespace titan::nn
