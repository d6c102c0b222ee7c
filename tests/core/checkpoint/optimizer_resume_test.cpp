// An optimizer that is saved and loaded continues as if it had never stopped, on one rank and over
// a pipeline. Tests the shipped optimizers, the template of `titan new-plugin` and the optimizer of
// the experiment.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include <titan/checkpoints/tensor_index.h>
#include <titan/optimizer.h>
#include <titan/plugin.h>

#include "core/checkpoint/reader.h"
#include "core/checkpoint/shard_plan.h"
#include "core/checkpoint/state.h"
#include "core/checkpoint/writer.h"
#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/registry.h"
#include "tests/plugins/test_folder.h"
#include "tests/sdk/dist/thread_ranks.h"

// linked in like the plugins of TITAN_STATIC_PLUGINS
extern "C" const titan::PluginEntry* titan_plugin_entry_v1_template_optimizer();
extern "C" const titan::PluginEntry* titan_plugin_entry_v1_experiment_optimizer();

namespace titan::core {
namespace {

using dist::Mesh;
using dist::MeshShape;

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const OptimizerContext&)>;

/// The optimizer with its default options.
MakeOptimizer linked_in(const PluginEntry* entry) {
  return [entry](const OptimizerContext& context) {
    Plugin plugin;
    entry->register_plugin(&plugin);
    void* made = plugin.components().front().make(nullptr, &context);
    return std::unique_ptr<Optimizer>(static_cast<Optimizer*>(made));
  };
}

MakeOptimizer shipped(const std::string& name, std::initializer_list<Value::Member> options = {}) {
  return [name, given = Value::map(options)](const OptimizerContext& context) {
    return titan::testing::create<Optimizer>(name, given, context);
  };
}

const std::map<std::string, MakeOptimizer>& optimizers() {
  static const std::map<std::string, MakeOptimizer> kOptimizers = {
      {"template", linked_in(titan_plugin_entry_v1_template_optimizer())},
      {"experiments/three_moments", linked_in(titan_plugin_entry_v1_experiment_optimizer())},
      {"AdamW", shipped("AdamW")},
      {"Adam", shipped("Adam")},
      {"Lion", shipped("Lion")},
      {"Muon", shipped("Muon")},
      {"SGD", shipped("SGD", {{"momentum", 0.9}})}};
  return kOptimizers;
}

using Weights = std::map<std::string, at::Tensor>;

/// One rank's stage: four matrices, of which each pipeline rank holds its share.
struct Stage {
  explicit Stage(const Mesh& mesh) {
    const dist::Group& pipeline = mesh.group("pp");
    for (int i = 0; i < 4; ++i) {
      if (i * pipeline.size() / 4 != pipeline.rank()) continue;
      own.push_back(
          std::make_unique<Parameter>(std::vector<int64_t>{3, 4}, nn::Init::normal(0, 1)));
      own.back()->set_name("layers." + std::to_string(i) + ".weight");
      own.back()->materialize(c10::kCPU, at::kFloat, 5);
      parameters.push_back(own.back().get());
    }
  }

  /// Steps `first` to `last` on made-up gradients; the last parameter has none at first.
  void train(Optimizer& optimizer, int first, int last) {
    for (int step = first; step <= last; ++step) {
      for (Parameter* p : parameters) {
        if (step < 5 && p->name() == "layers.3.weight") continue;
        at::NoGradGuard no_grad;
        p->shard().mutable_grad() =
            at::sin(at::arange(12, at::kFloat).view({3, 4}) * (0.3 * step)) + p->shard() * 0.1;
      }
      optimizer.step(1.0 / step);
    }
  }

  std::vector<StateTensor> tensors(Optimizer& optimizer) const {
    std::vector<StateTensor> all;
    for (const Parameter* p : parameters)
      all.push_back({p->name(), p->global_shape(), p->slice(), p->shard().detach(), {}});
    for (StateTensor& state : states_of(optimizer)) all.push_back(std::move(state));
    return all;
  }

  std::vector<std::unique_ptr<Parameter>> own;
  std::vector<Parameter*> parameters;
};

/// The weights after six steps. `saves`: in two runs, with a checkpoint after step three.
Weights after_six_steps(const MeshShape& shape, const MakeOptimizer& make, bool saves) {
  const titan::testing::TestFolder folder;
  Weights weights;
  std::mutex mutex;
  titan::testing::run_ranks(shape, [&](const Mesh& mesh) {
    Stage stage(mesh);
    {
      const auto optimizer = make({stage.parameters, &mesh});
      stage.train(*optimizer, 1, saves ? 3 : 6);
      if (saves)
        write_shards(folder.path(),
                     plan_files(own_part(stage.tensors(*optimizer), mesh.grid(), mesh.rank()),
                                "weights", mesh.rank()),
                     1);
      mesh.group("world").barrier();
    }
    if (saves) {
      stage = Stage(mesh);
      const auto optimizer = make({stage.parameters, &mesh});
      const TensorIndex index = index_files(safetensors_files(folder.path()));
      const std::vector<StateTensor> wanted = stage.tensors(*optimizer);
      check_fits(index, wanted, "the checkpoint");
      load_tensors(
          index, wanted, [](const std::string& name) { return name; }, mesh.group("world"),
          c10::kCPU);
      stage.train(*optimizer, 4, 6);
    }
    const std::lock_guard lock(mutex);
    for (const Parameter* p : stage.parameters) weights[p->name()] = p->shard().detach();
  });
  return weights;
}

TEST(OptimizerResume, TakesNumbersThatAnotherProgramStoredWithoutAShape) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {}}) {
    const titan::testing::TestFolder folder;
    titan::testing::write_stored(folder, "optimizer.safetensors",
                                 {{"optim.step.w", at::full(shape, 7.0f)}});
    Parameter parameter({2}, nn::Init::constant(0));
    parameter.set_name("w");
    parameter.materialize(c10::kCPU, at::kFloat, 1);
    const auto adamw = shipped("AdamW")({{&parameter}});
    std::vector<StateTensor> states = states_of(*adamw);
    std::erase_if(states, [](const StateTensor& state) { return !state.is_whole; });
    ASSERT_EQ(states.size(), 1u);
    const TensorIndex index = index_files(safetensors_files(folder.path()));
    follow_stored_numbers(states, index);
    check_fits(index, states, "the checkpoint");
    load_tensors(
        index, states, [](const std::string& name) { return name; }, Mesh().group("world"),
        c10::kCPU);
    EXPECT_EQ(states_of(*adamw).front().tensor.item<float>(), 7) << shape.size();
  }
}

TEST(OptimizerResume, EqualsARunInOnePieceBitByBit) {
  for (const auto& [name, make] : optimizers())
    for (const MeshShape& shape : {MeshShape{}, MeshShape{.pp = 2}}) {
      const Weights straight = after_six_steps(shape, make, false);
      const Weights resumed = after_six_steps(shape, make, true);
      ASSERT_EQ(straight.size(), 4u);
      for (const auto& [parameter, weight] : straight)
        EXPECT_TRUE(at::equal(weight, resumed.at(parameter)))
            << name << ", " << parameter << ", pp " << shape.pp;
    }
}

}  // namespace
}  // namespace titan::core
