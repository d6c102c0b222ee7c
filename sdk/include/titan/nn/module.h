// The base of all layers, and the one mechanism by which anything changes how a layer runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>  // x + y, for those who write layers
#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>

namespace titan {
class ModelPart;
}

namespace titan::nn {

/// Runs the rest: the next wrapper inwards, or the layer itself.
using Next = std::function<at::Tensor(const at::Tensor& x, const Batch& batch)>;
/// Goes around a layer: gathers weights before it, communicates after it, re-runs it in backward,
/// times it.
using Wrapper =
    std::function<at::Tensor(const at::Tensor& x, const Batch& batch, const Next& next)>;

/// How tensor parallelism has to treat the region of a module: data, not code; models do not know
/// who reads it.
enum class Region {
  local,               ///< nothing to do around it
  gathered_to_partial  ///< its input must be whole in the sequence, its output is a partial sum
                       ///< over ranks
};

/// One layer: an activation in, an activation out. Everything that is not differentiated rides in
/// `batch`.
///
/// A module owns its parameters and its children; both are visited in the order in which they were
/// added, which is the order of the checkpoint's names. Thread: trainer thread.
class TITAN_API Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module();

  /// Runs the layer through all its wrappers, the outermost (last added) first.
  at::Tensor operator()(const at::Tensor& x, const Batch& batch);
  void wrap(Wrapper around);

  /// Adds a child that the module's own code does not know: an adapter, which a kernel or a wrapper
  /// runs. ModelPart::refresh gives its parameters their names.
  void attach(std::string name, std::unique_ptr<Module> module);

  /// `module` takes the place of the child at `path` ("attention.wq") in every call and visit from
  /// now on, and gets what goes around it. The parent's code does not change: the child stays where
  /// its parent refers to it, and hands on its calls.
  ///
  /// Below `module` there must be the parameters that are below the child, under the names that
  /// they have there (adopt_parameter, adopt_module, borrow_parameter), and no others. So names,
  /// shards, hooks and gathered units stay what they are, and a child can be replaced in every
  /// phase. Throws a plugin Error that names what differs, a second replacement of one child too.
  /// Of a part's modules ModelPart::replace does it.
  void replace_child(const std::string& path, std::unique_ptr<Module> module);

  /// For others that use a parameter of this module or, by its path, of one below: a tied head, a
  /// module that replaces this one.
  std::shared_ptr<Parameter> shared_parameter(const std::string& path) const;
  /// A module below, by its path, for one that replaces this module and runs it as before.
  template <class M>
  std::shared_ptr<M> shared_module(const std::string& path) const {
    return std::dynamic_pointer_cast<M>(module_at(path));
  }

  Region region() const { return region_; }
  /// Who computes in the place of this layer, in words for people; empty: the layer itself.
  virtual std::string computed_by() const { return ""; }

  /// Names every parameter below: `prefix` + "." + path. Called when a model part is assembled.
  void set_names(const std::string& prefix);

  /// [before Phase::data] Parameter::leave_to for every parameter below but states.
  void leave_to(const std::string& owner);

  using ParameterVisitor = std::function<void(Parameter&)>;
  using ModuleVisitor = std::function<void(const std::string& path, Module&)>;
  /// Every parameter below, in order; one that is shared (tied) is met at its owner and at its
  /// borrowers.
  void visit_parameters(const ParameterVisitor& visit);
  /// This module and every one below; `path` is relative to `prefix`.
  void visit_modules(const ModuleVisitor& visit, const std::string& prefix = "");

 protected:
  virtual at::Tensor forward(const at::Tensor& x, const Batch& batch) = 0;

  /// Declares a parameter called `name` of this module.
  Parameter& add_parameter(std::string name, std::vector<int64_t> shape, const Init& init);
  /// Declares a state called `name`: a tensor that is saved, resumed and exchanged like a weight
  /// but not trained, of type `dtype` under every training.dtype. Its module alone changes it, in
  /// place and where no graph is recorded, at StepMember::commit (nn::StepModule): to equal values
  /// on all ranks that hold the module.
  Parameter& add_state(std::string name, std::vector<int64_t> shape, const Init& init,
                       at::ScalarType dtype = at::kFloat);
  /// Uses a parameter that another module owns and names (tied weights).
  void borrow_parameter(std::shared_ptr<Parameter> parameter);
  /// Owns `parameter`, of what this module replaces, under the name that it had there.
  Parameter& adopt_parameter(std::string name, std::shared_ptr<Parameter> parameter);
  /// Adds a child and returns it.
  template <class M>
  M& add_module(std::string name, std::unique_ptr<M> module) {
    return adopt_module(std::move(name), std::shared_ptr<M>(std::move(module)));
  }
  /// As add_module, of a child of what this module replaces.
  template <class M>
  M& adopt_module(std::string name, std::shared_ptr<M> module) {
    M& added = *module;
    children_.emplace_back(std::move(name), std::move(module));
    return added;
  }
  void set_region(Region region) { region_ = region; }
  /// Throws a plugin Error when `owner` would compute in a layer that another one has replaced.
  void check_runs(std::string_view owner, std::string_view place) const;

 private:
  friend class titan::ModelPart;
  struct Entry {
    std::string name;  // empty: borrowed
    std::shared_ptr<Parameter> parameter;
  };
  using NamedParameters = std::vector<std::pair<std::string, Parameter*>>;

  enum class Weights { same, others };

  /// Null: there is none.
  std::shared_ptr<Module> module_at(const std::string& path) const;
  /// By their names below this module; borrowed ones have none.
  void collect(const std::string& prefix, NamedParameters& found) const;
  /// `others`: those below `module` replace those below this one.
  void step_aside_for(std::unique_ptr<Module> module, const std::string& path,
                      Weights weights = Weights::same);
  void check_same_weights(const Module& module, const std::string& path) const;
  at::Tensor run(size_t num_wrappers, const at::Tensor& x, const Batch& batch);

  std::vector<Entry> parameters_;
  // shared with a module that has replaced this one
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  std::vector<Wrapper> wrappers_;
  Region region_ = Region::local;
  std::unique_ptr<Module> replacement_;
};

}  // namespace titan::nn
