// Plugin kind `optimizer`: updates parameters from their gradients.
#pragma once

#include <functional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>

namespace titan {

using nn::Parameter;

/// What the run lends to an optimizer; all of it lives as long as the optimizer does.
struct OptimizerContext {
  std::vector<Parameter*> parameters;  ///< those that are trained: none of them is frozen
  const dist::Mesh* mesh = nullptr;    ///< for updates that need whole matrices; null: one rank
  uint64_t seed = 0;                   ///< of the run, for those who draw random numbers
};

/// Optional, needed for exact resume.
class TITAN_API StatefulOptimizer {
 public:
  virtual ~StatefulOptimizer();
  using StateVisitor =
      std::function<void(Parameter& parameter, std::string_view name, at::Tensor& state)>;
  /// Each state tensor by parameter and name ("exp_avg"); of the shard's shape, or a scalar.
  virtual void visit_state(const StateVisitor& visit) = 0;
};

class TITAN_API Optimizer {
 public:
  static constexpr const char* kKind = "optimizer";
  using Interface = Optimizer;
  using Context = OptimizerContext;
  template <class T>
  static std::vector<std::string> abilities() {
    if constexpr (std::is_base_of_v<StatefulOptimizer, T>)
      return {"StatefulOptimizer"};
    else
      return {};
  }

  virtual ~Optimizer();

  /// [trainer thread, gradients reduced and clipped] Updates every parameter's shard() in place
  /// from grad(), skipping those whose gradient is undefined. The learning rate is the optimizer's
  /// own times `lr_factor`.
  virtual void step(double lr_factor) = 0;
  /// The base learning rate, for the log.
  virtual double lr() const = 0;
};

}  // namespace titan
