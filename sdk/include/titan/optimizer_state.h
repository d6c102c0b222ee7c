// The state that an optimizer keeps between steps. Declaring it once makes the trainer allocate,
// save and resume it.
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

/// Shape, dtype and initial value of a state.
struct StateForm {
  bool is_number = false;  ///< one number per parameter; otherwise a tensor of its shard's shape
  /// If set: a tensor of the returned shape instead, such as a preconditioner. Every rank that
  /// holds a part of the parameter holds the whole state, with equal values: the optimizer computes
  /// it from gathered gradients. The shape depends on the global shape only.
  std::function<std::vector<int64_t>(const Parameter&)> whole_shape = {};
  std::optional<at::ScalarType> dtype;  ///< unset: the shard's dtype, for a number float32
  double initial = 0;                   ///< in every element
};

/// One state of some parameters: a tensor for each, created on first use, so that a parameter that
/// never gets a gradient costs no memory.
class TITAN_API OptimizerState {
 public:
  /// Called by StatefulOptimizer::add_state.
  OptimizerState(std::string name, std::vector<Parameter*> parameters, StateForm form);

  const std::string& name() const { return name_; }
  const std::vector<Parameter*>& parameters() const { return parameters_; }
  /// Whether each rank holds the whole tensors, of a shape of their own (StateForm::whole_shape).
  bool is_whole() const { return form_.whole_shape != nullptr; }

  /// The tensor of parameters()[index]. Change it in place: checkpoints hold this very tensor.
  const at::Tensor& operator[](size_t index);
  /// Throws a plugin Error when the tensor at `index` no longer has its declared shape and dtype.
  void check_form(size_t index) const;

 private:
  at::ScalarType dtype_of(const Parameter& parameter) const;
  std::vector<int64_t> sizes_of(const Parameter& parameter) const;

  std::string name_;
  std::vector<Parameter*> parameters_;
  StateForm form_;
  std::vector<at::Tensor> tensors_;  // undefined before the first use
};

/// An optimizer that keeps state between steps declares each state in its constructor:
///
///   momentum_(add_state("momentum", parameters_))     // titan::OptimizerState& momentum_;
///   momentum_[i].mul_(0.9).add_(parameters_[i]->grad());
///
/// Nothing else is needed: a checkpoint holds every declared state of every parameter, and a run
/// that resumes begins with the stored values, under any layout of ranks. Thread: trainer thread.
/// A transform may derive from this too. It declares its states in `apply`, by names that no
/// optimizer uses; they are saved with the optimizer's.
class TITAN_API StatefulOptimizer {
 public:
  StatefulOptimizer() = default;
  StatefulOptimizer(const StatefulOptimizer&) = delete;
  StatefulOptimizer& operator=(const StatefulOptimizer&) = delete;
  virtual ~StatefulOptimizer();

  /// [constructor] `name` appears in checkpoints, "optim.<name>.<parameter>", and contains no dot.
  /// The result lives as long as the optimizer. Throws a plugin Error for an invalid name, for a
  /// parameter that already has a state of this name, and once the states are sealed.
  OptimizerState& add_state(std::string name, const std::vector<Parameter*>& parameters,
                            StateForm form = {});
  /// [constructor] Adds the states of `member`, an optimizer that this one owns, to its own.
  void add_states_of(StatefulOptimizer& member);
  /// [trainer, after the constructor] From now on add_state throws: a checkpoint would hold a state
  /// that is declared later, but a resumed run would not find it.
  void seal_states() { is_sealed_ = true; }

  using StateVisitor = std::function<void(Parameter& parameter, const OptimizerState& state,
                                          const at::Tensor& tensor)>;
  /// Visits each tensor of each state, even if its parameter never had a gradient: parameter by
  /// parameter, the states of one parameter in the order of declaration. Final, so that a
  /// checkpoint holds exactly the declared states.
  virtual void visit_state(const StateVisitor& visit) final;

 private:
  std::vector<std::unique_ptr<OptimizerState>> own_;
  std::vector<OptimizerState*> states_;  // own_ and those of members
  bool is_sealed_ = false;
};

}  // namespace titan
