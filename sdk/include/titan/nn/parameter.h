// One named weight of a model: what it is globally, which part of it this rank holds, and the
// tensors behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>
#include <titan/export.h>
#include <titan/nn/init.h>

namespace titan::nn {

/// `value()` is what forward reads, `shard()` what the optimizer updates and checkpoints store.
/// They are the same tensor until a data-parallel transform separates them.
///
/// Life: constructed on the meta device, named when its model part is assembled, narrowed by
/// transforms, then given memory and values once by `materialize`. Thread: trainer thread; gradient
/// hooks run on the thread that runs backward.
class TITAN_API Parameter {
 public:
  Parameter(std::vector<int64_t> shape, const Init& init);
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

  /// Keeps this rank's chunk of dimension `dim` of the present slice: chunks of ceil(size / n), the
  /// last ones shorter or empty. Throws an internal Error when memory exists already.
  void shard_over(int64_t dim, const dist::Group& group);

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
  std::vector<int64_t> global_shape_;
  Init init_;
  Slice slice_;
  bool materialized_ = false;
  at::Tensor value_;
  at::Tensor shard_;  // defined only when it is not value_
  std::vector<std::function<void(Parameter&)>> gradient_functions_;
};

}  // namespace titan::nn
