// The base class of all layers, and the wrappers by which transforms change how a layer runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>  // x + y, for authors of layers
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
/// Wraps a layer: gathers weights before it, communicates after it, re-runs it in backward,
/// measures its time.
using Wrapper =
    std::function<at::Tensor(const at::Tensor& x, const Batch& batch, const Next& next)>;

/// Declares how tensor parallelism treats the region of a module. Models set it as data and do not
/// depend on the code that reads it.
enum class Region {
  local,               ///< nothing to do around it
  gathered_to_partial  ///< its input must be whole in the sequence, its output is a partial sum
                       ///< over ranks
};

/// One layer: an activation in, an activation out. Inputs without gradients are passed in `batch`.
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

  /// Adds a child that the module's own code does not call: an adapter, which a kernel or a wrapper
  /// runs. ModelPart::refresh names its parameters.
  void attach(std::string name, std::unique_ptr<Module> module);

  /// `module` replaces the child at `path` ("attention.wq") in every call and visit from now on and
  /// inherits its wrappers. The parent's code does not change: the old child stays in place and
  /// forwards its calls.
  ///
  /// The parameters below `module` must be exactly those below the child, under the same names
  /// (adopt_parameter, adopt_module, borrow_parameter). So names, shards, hooks and gathered units
  /// do not change, and a child can be replaced in every phase. Throws a plugin Error that names
  /// the difference; also if a kernel owner or a wrapper below the child would be lost. For modules
  /// of a part, ModelPart::replace does the same.
  void replace_child(const std::string& path, std::unique_ptr<Module> module);

  /// For modules that use a parameter of this module or, by its path, of one below: a tied head, or
  /// a module that replaces this one.
  std::shared_ptr<Parameter> shared_parameter(const std::string& path) const;
  /// A module below, by its path, for one that replaces this module and runs it as before.
  template <class M>
  std::shared_ptr<M> shared_module(const std::string& path) const {
    return std::dynamic_pointer_cast<M>(module_at(path));
  }

  Region region() const { return region_; }
  /// The plugins that compute in place of this layer, for messages; empty: the layer itself.
  virtual std::string computed_by() const { return ""; }

  /// Names every parameter below: `prefix` + "." + path. Called when a model part is assembled.
  void set_names(const std::string& prefix);

  /// [before Phase::data] Calls Parameter::leave_to for every parameter below, except states.
  void leave_to(const std::string& owner);

  using ParameterVisitor = std::function<void(Parameter&)>;
  using ModuleVisitor = std::function<void(const std::string& path, Module&)>;
  /// Visits every parameter below, in order; a shared (tied) one at its owner and at its borrowers.
  void visit_parameters(const ParameterVisitor& visit);
  /// Visits this module and every one below; `path` is relative to `prefix`.
  void visit_modules(const ModuleVisitor& visit, const std::string& prefix = "");

 protected:
  virtual at::Tensor forward(const at::Tensor& x, const Batch& batch) = 0;

  /// Declares a parameter called `name` of this module.
  Parameter& add_parameter(std::string name, std::vector<int64_t> shape, const Init& init);
  /// Declares a state called `name`: a tensor that is saved, resumed and exchanged like a weight,
  /// but not trained. Its dtype does not depend on training.dtype. Only its module changes it: in
  /// place, without recording a graph, at StepMember::commit (nn::StepModule), and to equal values
  /// on all ranks that hold the module.
  Parameter& add_state(std::string name, std::vector<int64_t> shape, const Init& init,
                       at::ScalarType dtype = at::kFloat);
  /// Uses a parameter that another module owns and names (tied weights).
  void borrow_parameter(std::shared_ptr<Parameter> parameter);
  /// Owns `parameter`, which belongs to the module that this one replaces, under its old name.
  Parameter& adopt_parameter(std::string name, std::shared_ptr<Parameter> parameter);
  /// Adds a child and returns it.
  template <class M>
  M& add_module(std::string name, std::unique_ptr<M> module) {
    return adopt_module(std::move(name), std::shared_ptr<M>(std::move(module)));
  }
  /// As add_module, for a child of the module that this one replaces.
  template <class M>
  M& adopt_module(std::string name, std::shared_ptr<M> module) {
    M& added = *module;
    children_.emplace_back(std::move(name), std::move(module));
    return added;
  }
  void set_region(Region region) { region_ = region; }
  /// Throws a plugin Error if `owner` would compute in a layer that was replaced.
  void check_runs(std::string_view owner, std::string_view place) const;

 private:
  friend class titan::ModelPart;
  struct Entry {
    std::string name;  // empty: borrowed
    std::shared_ptr<Parameter> parameter;
  };
  using NamedParameters = std::vector<std::pair<std::string, Parameter*>>;

  enum class Weights { same, others };

  /// Null if there is none.
  std::shared_ptr<Module> module_at(const std::string& path) const;
  /// The parameters by their names below this module; borrowed ones have none.
  void collect(const std::string& prefix, NamedParameters& found) const;
  /// `others`: the parameters below `module` replace those below this one.
  void be_replaced_by(std::unique_ptr<Module> module, const std::string& path,
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
