// One named weight of a model: what it is globally, which part of it this rank holds, and the
// tensors behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>
#include <titan/export.h>
#include <titan/nn/init.h>

namespace titan::nn {

/// How a shard travels when data parallelism gathers it: a seam for narrower formats (float8).
class TITAN_API GatherTransform {
 public:
  virtual ~GatherTransform();
  /// Of what travels.
  virtual at::ScalarType wire_dtype() const = 0;
  /// The shard in `wire_dtype`, same shape. Called once per gather, no graph is recorded.
  virtual at::Tensor encode(const at::Tensor& shard) = 0;
  /// Fills `value` (the parameter's whole value, in the dtype of the computation) from the gathered
  /// `wire` of the same shape.
  virtual void decode(const at::Tensor& wire, const at::Tensor& value) = 0;
};

/// That a dimension of a parameter is cut over the ranks of a group.
struct Sharding {
  int64_t dim = 0;
  std::string group;  ///< its name in the mesh
};

/// `value()` is what forward reads, `shard()` what the optimizer updates and checkpoints store.
/// They are the same tensor until a data-parallel transform separates them.
///
/// Life: constructed on the meta device, named when its model part is assembled, narrowed by
/// transforms, then given memory once, with initial values (`materialize`) or without (`allocate`).
/// Thread: trainer thread; gradient hooks run on the thread that runs backward.
class TITAN_API Parameter {
 public:
  Parameter(std::vector<int64_t> shape, const Init& init);
  /// State of a module (Module::add_state): of type `dtype` whatever the run's is, frozen, left to
  /// its module.
  Parameter(std::vector<int64_t> shape, const Init& init, at::ScalarType dtype);
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  /// Fully qualified: "layers.0.attention.wq.weight". The same under every layout; checkpoints use
  /// it.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  const std::vector<int64_t>& global_shape() const { return global_shape_; }
  int64_t global_num_elements() const;
  const Init& init() const { return init_; }
  /// The rectangle of the global tensor that `shard()` holds.
  const Slice& slice() const { return slice_; }

  /// Whether it is state of a module rather than a weight: never trained, cut, cast or averaged,
  /// and not counted among the model's parameters; named, moved, saved and exchanged as they are.
  bool is_state() const { return own_dtype_.has_value(); }
  /// Of a state; none: stored in the run's.
  std::optional<at::ScalarType> own_dtype() const { return own_dtype_; }

  /// Keeps this rank's chunk of dimension `dim` of the present slice: chunks of ceil(size / n), the
  /// last ones shorter or empty. Throws an internal Error when memory exists already, a plugin
  /// Error for a state.
  void shard_over(int64_t dim, const dist::Group& group);
  /// In the order in which they were made. The parameter is the same on the ranks of every group
  /// that is not here: over these its gradient is summed, among data-parallel ranks by the
  /// transforms for that, which leave out those along which it is cut (Grid::rest_of). Whoever cuts
  /// over such ranks brings the gradients of all of their tokens to the part that he has kept.
  const std::vector<Sharding>& shardings() const { return shardings_; }

  /// [before Phase::data] Data-parallel transforms neither cut, cast nor gather it, nor sum its
  /// gradient: `owner`, a name for messages, does that and calls complete_gradient(). Throws a
  /// config Error that names both when another one owns it.
  void leave_to(const std::string& owner);
  /// Empty where nobody has claimed it.
  const std::string& owner() const { return owner_; }

  /// [while on the meta device] Neither gets a gradient nor is updated: the base of an adapter.
  void freeze();
  bool is_frozen() const { return is_frozen_; }

  /// The shard lives on `device` rather than where `materialize` says (CPU offload).
  void keep_shard_on(c10::Device device) { shard_device_ = device; }

  /// `owner`, a name for messages, decides how the shard travels. Throws a config Error that names
  /// both when another one does already.
  void set_gather_transform(std::string owner, std::shared_ptr<GatherTransform> transform);
  GatherTransform* gather_transform() const { return gather_transform_.get(); }

  /// Gives the slice memory on `device`, without values: they are read from elsewhere. Requires a
  /// name. A state keeps its own type.
  void allocate(c10::Device device, at::ScalarType dtype);
  /// Gives the slice memory on `device` and its initial values. Requires a name.
  void materialize(c10::Device device, at::ScalarType dtype, uint64_t seed);
  bool is_materialized() const { return materialized_; }

  /// The leaf tensor that forward reads; on meta before `materialize`.
  const at::Tensor& value() const { return value_; }
  /// Shape of slice().sizes, no history of its own when it is not `value()`.
  const at::Tensor& shard() const { return shard_.defined() ? shard_ : value_; }
  /// The gradient of `shard()`; undefined before the first backward and after `clear_gradient`.
  at::Tensor grad() const { return shard().grad(); }
  void clear_gradient();
  /// Adds to the gradient of `value()` as a backward would, and runs what on_gradient has taken.
  void add_gradient(const at::Tensor& gradient);

  /// Another pipeline rank holds this parameter too (tied weights): that one counts its elements
  /// and saves it.
  bool is_copy() const { return is_copy_; }
  void set_copy(bool is_copy) { is_copy_ = is_copy; }

  /// `f` runs when grad() is what the optimizer will see but for clipping: summed over the step's
  /// microbatches and over all ranks. Whoever brings it there says so (GradientReducer; without one
  /// it is complete with the last microbatch).
  /// One `f` only: an internal Error when there is one already.
  void on_complete_gradient(std::function<void(Parameter&)> f);
  void complete_gradient() {
    if (on_complete_) on_complete_(*this);
  }

  /// From now on forward reads `leaf` (global or partly gathered) while `shard()` keeps the present
  /// tensor. Called by data-parallel transforms, which fill `leaf` around each use and bring its
  /// gradient to the shard.
  void separate_value(at::Tensor leaf);

  /// `f` runs when the gradient of `value()` of one backward is complete, in the order of
  /// registration.
  void on_gradient(std::function<void(Parameter&)> f);

 private:
  void attach_gradient_hook();

  std::string name_;
  std::string owner_;
  std::vector<int64_t> global_shape_;
  Init init_;
  Slice slice_;
  std::vector<Sharding> shardings_;
  std::optional<at::ScalarType> own_dtype_;  // of a state
  std::optional<c10::Device> shard_device_;
  std::shared_ptr<GatherTransform> gather_transform_;
  std::string gather_owner_;  // who gave it
  bool materialized_ = false;
  bool is_copy_ = false;
  bool is_frozen_ = false;
  at::Tensor value_;
  at::Tensor shard_;  // defined only when it is not value_
  std::vector<std::function<void(Parameter&)>> gradient_functions_;
  std::function<void(Parameter&)> on_complete_;
};

}  // namespace titan::nn
