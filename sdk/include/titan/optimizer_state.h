// What an optimizer keeps between steps: declared once, and by that made, saved and resumed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>

namespace titan {

using nn::Parameter;

/// What a state looks like before the first step.
struct StateForm {
  bool is_number = false;               ///< one number for each parameter; else its shard's shape
  std::optional<at::ScalarType> dtype;  ///< unset: the shard's, of a number float32
  double initial = 0;                   ///< in every element
};

/// One state of some parameters: a tensor for each, made when it is first asked for, so that a
/// parameter that never gets a gradient costs no memory.
class TITAN_API OptimizerState {
 public:
  /// StatefulOptimizer::add_state makes them.
  OptimizerState(std::string name, std::vector<Parameter*> parameters, StateForm form);

  const std::string& name() const { return name_; }
  const std::vector<Parameter*>& parameters() const { return parameters_; }

  /// Of the parameter at place `index` of those that it was declared for. Change it in place:
  /// checkpoints hold this very tensor.
  const at::Tensor& operator[](size_t index);
  /// Throws a plugin Error when the tensor at `index` is no longer of the shape and type in which
  /// it was made.
  void check_form(size_t index) const;

 private:
  at::ScalarType dtype_of(const Parameter& parameter) const;

  std::string name_;
  std::vector<Parameter*> parameters_;
  StateForm form_;
  std::vector<at::Tensor> tensors_;  // undefined before the first use
};

/// An optimizer that keeps something between steps declares each state in its constructor:
///
///   momentum_(add_state("momentum", parameters_))     // titan::OptimizerState& momentum_;
///   momentum_[i].mul_(0.9).add_(parameters_[i]->grad());
///
/// The declaration is all there is to do: a checkpoint holds every declared state of every
/// parameter, and a run that resumes begins with the stored values, under any layout of ranks.
/// Thread: trainer thread.
class TITAN_API StatefulOptimizer {
 public:
  StatefulOptimizer() = default;
  StatefulOptimizer(const StatefulOptimizer&) = delete;
  StatefulOptimizer& operator=(const StatefulOptimizer&) = delete;
  virtual ~StatefulOptimizer();

  /// [constructor] `name` is that in checkpoints, "optim.<name>.<parameter>", and holds no dot. The
  /// result lives as long as the optimizer. Throws a plugin Error for a name that cannot be, a
  /// parameter that has a state of this name already, and once the states are sealed.
  OptimizerState& add_state(std::string name, const std::vector<Parameter*>& parameters,
                            StateForm form = {});
  /// [constructor] The states of `member`, which this optimizer owns, are its own as well.
  void add_states_of(StatefulOptimizer& member);
  /// [the host, after the constructor] A state that is declared later would be saved, and missed
  /// by whoever resumes.
  void seal_states() { is_sealed_ = true; }

  using StateVisitor =
      std::function<void(Parameter& parameter, std::string_view name, const at::Tensor& state)>;
  /// Each tensor of each state, whether its parameter has had a gradient or not: parameter after
  /// parameter, and the states of one in the order of declaration. Not to be overridden: what is
  /// saved is what was declared.
  virtual void visit_state(const StateVisitor& visit) final;

 private:
  std::vector<std::unique_ptr<OptimizerState>> own_;
  std::vector<OptimizerState*> states_;  // own_, and those of members
  bool is_sealed_ = false;
};

}  // namespace titan
