// Weights that a converter changes on export: which ones, their values, and the memory needed.
#include "core/exchange/merged_weights.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>

#include <titan/device.h>
#include <titan/nn/linear.h>

#include "core/runtime/groups/process_groups.h"
#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using testing::error_of;
using testing::holds;
using testing::same_bytes;
using testing::TestFolder;

enum class Reach { own_layer, first_layer };

/// Adds a matrix "bonus" of the weight's shape to the layers "a" and "b". The exported weight is
/// the sum.
class Bonus final : public Converter, public ExportTransform {
 public:
  explicit Bonus(Reach reach) : reach_(reach) {}

  Phase phase() const override { return Phase::convert; }
  void apply(ModelPart& part, const TransformContext&) override {
    for (const size_t i : {0, 1})
      part.layers()[i].module->attach(
          "bonus",
          std::make_unique<nn::Linear>(3, 4, nn::WeightLayout::replicated, nn::Init::constant(0)));
    part.refresh();
    for (nn::Parameter* p : part.parameters()) parameters_[p->name()] = p;
  }
  bool is_absorbed(std::string_view name) const override { return name.ends_with("bonus.weight"); }
  at::Tensor exported(nn::Parameter& parameter) override {
    const std::string layer = reach_ == Reach::first_layer ? "a" : parameter.name().substr(0, 1);
    const at::Tensor base = parameter.shard().detach();
    const auto bonus = parameters_.find(layer + ".bonus.weight");
    return bonus == parameters_.end() ? base : base + bonus->second->shard().detach();
  }

 private:
  Reach reach_;
  std::map<std::string, nn::Parameter*> parameters_;
};

class WeightsForOthers : public ::testing::Test {
 protected:
  WeightsForOthers() {
    std::vector<testing::Stored> stored;
    for (const auto& [name, tensor] : values_) stored.push_back({name, tensor});
    index_ = index_files({write_stored(folder_, "model.safetensors", stored)});
  }

  MergedWeights merged(Reach reach = Reach::own_layer) {
    const auto build = [this, reach] {
      std::vector<Layer> layers;
      for (const char* name : {"a", "b", "c"})
        layers.push_back({.name = name,
                          .module = std::make_unique<nn::Linear>(3, 4, nn::WeightLayout::replicated,
                                                                 nn::Init::constant(0)),
                          .parameter_prefix = name});
      ConvertedModel model{.part = std::make_unique<ModelPart>(std::move(layers)),
                           .converter = std::make_unique<Bonus>(reach)};
      model.converter->apply(*model.part, {.mesh = mesh_, .device = *device_});
      last_ = model.part.get();
      return model;
    };
    return MergedWeights(build, "bonus", index_);
  }

  const std::map<std::string, at::Tensor> values_ = {
      {"a.weight", at::randn({4, 3})},
      {"a.bonus.weight", at::randn({4, 3})},
      {"b.weight", at::randn({4, 3}).to(at::kBFloat16)},
      {"b.bonus.weight", at::randn({4, 3}, at::kDouble)},
      {"c.weight", at::randn({4, 3})}};
  TestFolder folder_;
  TensorIndex index_;
  const dist::Mesh mesh_;
  const std::unique_ptr<Device> device_ = make_meta_device();
  const ModelPart* last_ = nullptr;  // the part that was built last
};

TEST_F(WeightsForOthers, AreKnownToChangeBeforeTheyAreRead) {
  index_.files = {"/nowhere"};
  const MergedWeights weights = merged();
  EXPECT_EQ(weights.num_changed(), 2u);
  for (const char* name : {"a.weight", "b.weight"}) EXPECT_TRUE(weights.is_changed(name));
  EXPECT_FALSE(weights.is_changed("c.weight"));
  EXPECT_FALSE(weights.is_changed("a.bonus.weight"));
  EXPECT_TRUE(weights.is_absorbed("a.bonus.weight"));
  EXPECT_FALSE(weights.is_absorbed("c.weight"));
}

TEST_F(WeightsForOthers, AreComputedFromWhatIsStoredInItsType) {
  MergedWeights weights = merged();
  for (const char* layer : {"a", "b", "a"}) {
    const std::string name = layer;
    const at::Tensor expected = values_.at(name + ".weight") + values_.at(name + ".bonus.weight");
    EXPECT_TRUE(same_bytes(weights.exported(name + ".weight"), expected)) << name;
  }
}

TEST_F(WeightsForOthers, NeedOneLayerAtATime) {
  MergedWeights weights = merged();
  for (const std::string layer : {"a", "b"}) {
    weights.exported(layer + ".weight");
    const ModelPart* loaded = last_;
    for (const nn::Parameter* p : loaded->parameters())
      EXPECT_EQ(p->is_materialized(), p->name().starts_with(layer + ".")) << p->name();
    weights.exported(layer + ".weight");
    EXPECT_EQ(last_, loaded);  // not loaded again
  }
}

TEST_F(WeightsForOthers, AreRefusedWhenTheyNeedOtherLayers) {
  MergedWeights weights = merged(Reach::first_layer);
  EXPECT_EQ(weights.num_changed(), 3u);
  weights.exported("a.weight");
  const Error error = error_of([&] { weights.exported("c.weight"); });
  EXPECT_EQ(error.kind(), ErrorKind::plugin);
  EXPECT_TRUE(holds(error.what(), "converter 'bonus'"));
  EXPECT_TRUE(holds(error.what(), "'c.weight'"));
  EXPECT_TRUE(holds(error.what(), "checkpoint.last_save_in_hf"));
}

}  // namespace
}  // namespace titan::core
