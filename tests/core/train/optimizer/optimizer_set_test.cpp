// Groups of parameters from the file to the update: each group has its own options, and the run's
// for the rest. Without gradients only weight decay moves weights, which shows the group of each.
#include "core/train/optimizer/optimizer_set.h"

#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "core/config/resolve.h"
#include "core/config/selection/registry_lookup.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/optimizers/optimizer_fixture.h"

namespace titan::core {
namespace {

using testing::holds;
using testing::parameter;
using testing::values_of;

class OptimizerGroups : public ::testing::Test {
 protected:
  JobConfig resolve_job(const std::string& optimizer) {
    const std::string base =
        "[training]\ndataset = \"jsonl\"\ndataset_path = \"" TITAN_SOURCE_DIR
        "/tests/assets/corpus/train.jsonl\"\n[model]\nhf_assets_path = \"" TITAN_SOURCE_DIR
        "/tests/assets/tokenizer\"\n";
    return resolve(read_sources("groups.toml", base + optimizer, {}), lookup_).config;
  }

  /// Weights of 1 after one step without gradients, in the order of `names`.
  std::vector<float> decayed(const JobConfig& config, const std::vector<std::string>& names,
                             bool is_early, double lr_factor = 1) {
    std::vector<std::unique_ptr<Parameter>> parameters;
    OptimizerContext context;
    for (const std::string& name : names) {
      parameters.push_back(parameter(name, {1}));
      testing::set_gradient(*parameters.back(), {0});
      context.parameters.push_back(parameters.back().get());
    }
    if (is_early) {
      for (const auto& optimizer : make_single_optimizers(config, registry_, context))
        optimizer->step(lr_factor);
    } else {
      make_optimizer(config, registry_, context)->step(lr_factor);
    }
    std::vector<float> values;
    for (const auto& each : parameters) values.push_back(values_of(*each).front());
    return values;
  }

  Catalog catalog_{std::vector<std::filesystem::path>{TITAN_PLUGIN_DIR}};
  Registry registry_{catalog_};
  RegistryLookup lookup_{catalog_, registry_};
};

constexpr const char* kGroups = R"(
[optimizer.groups.norms]
patterns = ["*norm*"]
weight_decay = 0.0
[optimizer.groups.head]
patterns = ["output.*", "*norm*"]
weight_decay = 0.25
lr = 0.2
)";
const std::vector<std::string> kNames = {"layers.0.attention.wq.weight", "layers.0.ffn_norm.weight",
                                         "output.weight"};

TEST_F(OptimizerGroups, DecayByTheirOwnRate) {
  for (const char* name : {"AdamW", "SGD", "Lion"}) {
    const JobConfig config = resolve_job(std::string("[optimizer]\nname = \"") + name +
                                         "\"\nlr = 0.1\nweight_decay = 0.5\n" + kGroups);
    for (const bool is_early : {false, true}) {
      const std::vector<float> found = decayed(config, kNames, is_early);
      EXPECT_FLOAT_EQ(found[0], 1 - 0.1 * 0.5) << name << is_early;
      EXPECT_EQ(found[1], 1) << name << is_early << ": the first group that fits counts";
      EXPECT_FLOAT_EQ(found[2], 1 - 0.2 * 0.25) << name << is_early;
      EXPECT_FLOAT_EQ(decayed(config, kNames, is_early, 0.5)[2], 1 - 0.5 * 0.2 * 0.25) << name;
    }
  }
}

TEST_F(OptimizerGroups, HaveWhatTheySetAndTheRestOfTheRun) {
  const JobConfig config = resolve_job(R"([optimizer]
lr = 0.1
beta1 = 0.8
eps = 1e-6
[optimizer.groups.a]
patterns = ["a*"]
beta1 = 0.5
beta2 = 0.6
implementation = "for-loop"
[optimizer.groups.b]
patterns = ["b*"]
lr = 0.3
eps = 1e-5
weight_decay = 0.7
)");
  ASSERT_EQ(config.optimizer_groups.size(), 2u);
  const auto option = [&](size_t group, const char* name) {
    return config.optimizer_groups[group].optimizer.options.at(name);
  };
  const std::vector<std::pair<const char*, std::vector<Value>>> expected = {
      {"lr", {0.1, 0.3}},           {"beta1", {0.5, 0.8}},
      {"beta2", {0.6, 0.95}},       {"eps", {1e-6, 1e-5}},
      {"weight_decay", {0.1, 0.7}}, {"implementation", {"for-loop", "fused"}}};
  for (const auto& [name, values] : expected)
    for (size_t group = 0; group < 2; ++group)
      EXPECT_EQ(option(group, name), values[group]) << name << " of group " << group;
}

TEST_F(OptimizerGroups, MustFitSomeParameter) {
  const JobConfig config = resolve_job(kGroups);
  const auto info = [](const char* name) { return ParameterInfo{.name = name}; };
  EXPECT_NO_THROW(check_groups(config, {info("output.weight"), info("norm.weight")}));
  const Error error = testing::error_of([&] { check_groups(config, {info("norm.weight")}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(
      error.message(),
      "optimizer.groups.head.patterns: no parameter of the model has a name like 'output.*'"));
}

}  // namespace
}  // namespace titan::core
