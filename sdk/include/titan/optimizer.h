// Plugin kind `optimizer`: updates parameters from their gradients.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>
#include <titan/optimizer_state.h>
#include <titan/step.h>

namespace titan {

/// Inputs that the run gives to an optimizer; all of them outlive it.
struct OptimizerContext {
  std::vector<Parameter*> parameters;  ///< the trained parameters: no frozen ones
  const dist::Mesh* mesh = nullptr;    ///< for updates that need whole matrices; null: one rank
  uint64_t seed = 0;                   ///< of the run, for optimizers that draw random numbers
};

/// An optimizer without state between steps derives from this alone; one with state also derives
/// from StatefulOptimizer.
class TITAN_API Optimizer {
 public:
  static constexpr const char* kKind = "optimizer";
  using Interface = Optimizer;
  using Context = OptimizerContext;
  template <class T>
  static std::vector<std::string> abilities() {
    std::vector<std::string> names;
    if (std::is_base_of_v<StatefulOptimizer, T>) names.emplace_back("StatefulOptimizer");
    if (std::is_base_of_v<StepMember, T>) names.emplace_back("StepMember");
    return names;
  }

  virtual ~Optimizer();

  /// [trainer thread, gradients reduced and clipped] Updates every parameter's shard() in place
  /// from grad(), skipping parameters whose gradient is undefined. The learning rate is lr() times
  /// `lr_factor`.
  virtual void step(double lr_factor) = 0;
  /// The base learning rate, for the log.
  virtual double lr() const = 0;
};

}  // namespace titan
