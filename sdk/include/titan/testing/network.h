// A small network on one rank, for the unit tests of plugins that change models, train them or
// watch them. It includes little, so that a test compiles fast.
//
//   titan::testing::Network network;                  // a decoder with 2 blocks, on the CPU
//   network.apply("acme/my_converter", {{"rank", 4}});
//   const titan::testing::Gradients g = network.run();  // forward and backward
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/testing/component.h>

TITAN_OPTIONAL_HEADER(testing_network);

namespace titan {
class ModelPart;
class Optimizer;
struct TransformContext;
namespace nn {
class Parameter;
}
}  // namespace titan

namespace titan::testing {

/// The result of one forward and backward.
struct Gradients {
  double loss = 0;                       ///< summed over the tokens
  std::map<std::string, at::Tensor> of;  ///< by parameter; without those that got no gradient
};

/// What a watcher logged: numbers by tag, by step.
using Watched = std::map<int64_t, std::map<std::string, double>>;

/// Made on the meta device, like a model of a run. The first `run` gives the weights their values,
/// the same ones in every network of the same layers.
class TITAN_API Network {
 public:
  /// 2 blocks of attention and feed-forward, width 32, 64 token ids.
  Network();
  /// The network of `model`, a model of the plugin under test.
  explicit Network(std::string_view model, OptionValues options = {})
      : Network(component({"model"}, model), Value::map(options)) {}
  ~Network();
  Network(const Network&) = delete;

  /// [before the first run] Applies a converter, parallelism, activation checkpointing or compile
  /// backend of the plugin under test, in a run of one rank in fp32.
  void apply(std::string_view transform, OptionValues options = {}) {
    apply(component({"converter", "parallelism", "activation_checkpoint", "compile_backend"},
                    transform),
          Value::map(options));
  }
  /// Trains on 2 sequences of 16 tokens, drawn from `seed`, without an update. Gradients of an
  /// earlier call are cleared.
  Gradients run(uint64_t seed = 1);
  /// [before the first run] Runs `steps` with a watcher of the plugin under test, which it calls as
  /// the trainer does, except for start, late_members, wrapper, validate and failed. Step n trains
  /// on the tokens of seed n.
  Watched watch(std::string_view watcher, OptionValues options, const std::vector<int64_t>& steps) {
    return watch(component({"watcher"}, watcher), Value::map(options), steps);
  }

  /// The names of all parameters.
  std::vector<std::string> parameters() const;
  /// Modules that a plugin computes, by path: the plugin.
  std::map<std::string, std::string> kernel_owners() const;

  /// For tests that do more; include titan/transform.h.
  ModelPart& part();
  const TransformContext& context() const;

 private:
  Network(const Component& model, const Value& options);
  void apply(const Component& transform, const Value& options);
  Watched watch(const Component& watcher, const Value& options, const std::vector<int64_t>& steps);

  struct Members;
  std::unique_ptr<Members> members_;
};

/// A parameter of this shape with random values; the same values for the same name.
TITAN_API std::unique_ptr<nn::Parameter> parameter(const std::string& name,
                                                   std::vector<int64_t> shape);

/// Gives `to` the states of `from`, as saving and resuming a run does. Both have the same
/// parameters. Does nothing for optimizers without state.
TITAN_API void copy_states(Optimizer& from, Optimizer& to);

/// Standard normal numbers in fp32.
TITAN_API at::Tensor random(std::vector<int64_t> shape, uint64_t seed);

/// Whether both have the same shape, dtype and bits.
TITAN_API bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// |reached - expected| / |expected|, in the 2-norm.
TITAN_API double relative_difference(const at::Tensor& reached, const at::Tensor& expected);

}  // namespace titan::testing
