// One named weight of a model: its global shape, the slice that this rank holds, and its tensors.
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

/// Encodes shards for communication when data parallelism gathers them, in narrower formats such as
/// float8.
class TITAN_API GatherTransform {
 public:
  virtual ~GatherTransform();
  /// The dtype in communication.
  virtual at::ScalarType wire_dtype() const = 0;
  /// The shard in `wire_dtype`, same shape. Called once per gather, without an autograd graph.
  virtual at::Tensor encode(const at::Tensor& shard) = 0;
  /// Fills `value` (the parameter's whole value, in the compute dtype) from the gathered `wire` of
  /// the same shape.
  virtual void decode(const at::Tensor& wire, const at::Tensor& value) = 0;
};

/// One sharded dimension, and the group over which it is sharded.
struct Sharding {
  int64_t dim = 0;
  std::string group;  ///< its name in the mesh
};

/// Forward reads `value()`; the optimizer updates `shard()`, and checkpoints store `shard()`.
/// They are the same tensor until a data-parallel transform separates them.
///
/// Life: constructed on the meta device, named when its model part is assembled, narrowed by
/// transforms, then given memory once, with initial values (`materialize`) or without (`allocate`).
/// Thread: trainer thread; gradient hooks run on the thread that runs backward.
class TITAN_API Parameter {
 public:
  Parameter(std::vector<int64_t> shape, const Init& init);
  /// State of a module (Module::add_state): of `dtype` in every run, frozen, owned by its module
  /// (leave_to).
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

  /// Whether it is state of a module rather than a weight. States are never trained, sharded, cast
  /// or averaged, and do not count as model parameters. They are named, moved, saved and exchanged
  /// unchanged.
  bool is_state() const { return own_dtype_.has_value(); }
  /// Of a state; unset: stored in the run's dtype.
  std::optional<at::ScalarType> own_dtype() const { return own_dtype_; }

  /// Keeps this rank's chunk of dimension `dim` of the current slice: chunks of ceil(size / n), the
  /// last ones shorter or empty. Throws an internal Error if memory exists already, a plugin Error
  /// for a state.
  void shard_over(int64_t dim, const dist::Group& group);
  /// In the order in which they were made. Ranks of every group that is not listed hold the same
  /// parameter, and its gradient is summed over them. Data-parallel transforms do this for
  /// data-parallel ranks, except along groups that shard the parameter (Grid::complement). A
  /// transform that shards over data-parallel ranks must itself reduce the gradients of all their
  /// tokens into its shard.
  const std::vector<Sharding>& shardings() const { return shardings_; }

  /// [before Phase::data] From now on data-parallel transforms neither shard, cast nor gather it,
  /// nor sum its gradient. `owner`, a name for messages, does all that and calls
  /// complete_gradient(). Throws a config Error that names both if it has another owner.
  void leave_to(const std::string& owner);
  /// Empty without an owner.
  const std::string& owner() const { return owner_; }

  /// [while on the meta device] It gets no gradient and no updates, such as the base of an adapter.
  void freeze();
  bool is_frozen() const { return is_frozen_; }

  /// The shard is stored on `device` instead of the device of `materialize` (CPU offload).
  void keep_shard_on(c10::Device device) { shard_device_ = device; }

  /// `owner`, a name for messages, sets how the shard is encoded for gathering. Throws a config
  /// Error that names both if another owner did already.
  void set_gather_transform(std::string owner, std::shared_ptr<GatherTransform> transform);
  GatherTransform* gather_transform() const { return gather_transform_.get(); }

  /// Gives the slice memory on `device`, without values: the caller reads the values from
  /// elsewhere. Requires a name. A state keeps its own dtype.
  void allocate(c10::Device device, at::ScalarType dtype);
  /// Gives the slice memory on `device` and its initial values. Requires a name.
  void materialize(c10::Device device, at::ScalarType dtype, uint64_t seed);
  bool is_materialized() const { return materialized_; }

  /// The leaf tensor that forward reads; on meta before `materialize`.
  const at::Tensor& value() const { return value_; }
  /// Has the shape slice().sizes, and no autograd history of its own if it is not `value()`.
  const at::Tensor& shard() const { return shard_.defined() ? shard_ : value_; }
  /// The gradient of `shard()`; undefined before the first backward and after `clear_gradient`.
  at::Tensor grad() const { return shard().grad(); }
  void clear_gradient();
  /// Adds to the gradient of `value()` as a backward would, and calls the functions of on_gradient.
  void add_gradient(const at::Tensor& gradient);

  /// Another pipeline rank also holds this parameter (tied weights), counts its elements and saves
  /// it.
  bool is_copy() const { return is_copy_; }
  void set_copy(bool is_copy) { is_copy_ = is_copy; }

  /// `f` runs when grad() is final except for clipping: summed over the step's microbatches and
  /// over all ranks. The code that completes the sum calls complete_gradient (GradientReducer;
  /// without one the gradient is complete with the last microbatch). Throws an internal Error if
  /// there is an `f` already.
  void on_complete_gradient(std::function<void(Parameter&)> f);
  void complete_gradient() {
    if (on_complete_) on_complete_(*this);
  }

  /// From now on forward reads `leaf` (global or partly gathered), whereas `shard()` keeps the
  /// current tensor. Called by data-parallel transforms, which fill `leaf` around each use and
  /// reduce its gradient into the shard.
  void separate_value(at::Tensor leaf);

  /// `f` runs when one backward has completed the gradient of `value()`. Several run in the order
  /// of registration.
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
  std::string gather_owner_;  // set_gather_transform's `owner`
  bool materialized_ = false;
  bool is_copy_ = false;
  bool is_frozen_ = false;
  at::Tensor value_;
  at::Tensor shard_;  // defined only when it is not value_
  std::vector<std::function<void(Parameter&)>> gradient_functions_;
  std::function<void(Parameter&)> on_complete_;
};

}  // namespace titan::nn
