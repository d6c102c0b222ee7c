// A set of ranks that communicate. Value type over a shared backend; one rank is N = 1, not a
// special case.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::dist {

enum class Reduce { sum, max, min };

/// What a process group can do. Implemented per transport (gloo, NCCL, one rank); Group is what
/// others use. Thread: one at a time; calls come in the same order on all ranks.
class TITAN_API Backend {
 public:
  virtual ~Backend();
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// `inout` of every rank becomes the reduction over all ranks.
  virtual void all_reduce(at::Tensor& inout, Reduce reduce) = 0;
  /// `out` (size x in, along dim 0) becomes every rank's `in` in rank order.
  virtual void all_gather(at::Tensor& out, const at::Tensor& in) = 0;
  /// `out` becomes this rank's chunk of the reduction of `in` (size x out, along dim 0).
  virtual void reduce_scatter(at::Tensor& out, const at::Tensor& in, Reduce reduce) = 0;
  /// `inout` of every rank becomes that of `root`.
  virtual void broadcast(at::Tensor& inout, int root) = 0;
  virtual void barrier() = 0;
};

/// The backend of a single rank: every collective is its own input.
TITAN_API std::shared_ptr<Backend> make_single_rank_backend();

/// Cheap to copy; copies share the backend (hence the shared pointer).
class TITAN_API Group {
 public:
  /// A group of this rank alone.
  Group();
  Group(std::string name, std::shared_ptr<Backend> backend);

  const std::string& name() const { return name_; }
  int rank() const { return backend_->rank(); }
  int size() const { return backend_->size(); }

  void all_reduce(at::Tensor& inout, Reduce reduce) const { backend_->all_reduce(inout, reduce); }
  void all_gather(at::Tensor& out, const at::Tensor& in) const { backend_->all_gather(out, in); }
  void reduce_scatter(at::Tensor& out, const at::Tensor& in, Reduce reduce) const {
    backend_->reduce_scatter(out, in, reduce);
  }
  void broadcast(at::Tensor& inout, int root) const { backend_->broadcast(inout, root); }
  void barrier() const { backend_->barrier(); }

  /// Reduction of one number; the trainer's counters use it.
  int64_t all_reduce(int64_t value, Reduce reduce) const;
  double all_reduce(double value, Reduce reduce) const;

 private:
  std::string name_;
  std::shared_ptr<Backend> backend_;
};

}  // namespace titan::dist
