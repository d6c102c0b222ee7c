// Group: a set of ranks that communicate. Backend: the interface of transports, such as gloo and
// NCCL. Used by all code that communicates; one rank is a group of size 1, not a special case.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/recorder.h>
#include <titan/export.h>

namespace titan::dist {

enum class Reduce { sum, max, min };

/// Rows along dim 0 that this rank sends to and receives from each rank of a group. Both empty:
/// equal chunks. The number that a rank sends to another equals the number that the other receives
/// from it; any number may be 0.
struct RowSplits {
  std::vector<int64_t> sent, received;

  bool is_equal() const { return sent.empty() && received.empty(); }
  /// The splits of the reverse exchange.
  RowSplits swapped() const { return {.sent = received, .received = sent}; }
};

/// A collective that a backend has started. Keeps its tensors alive.
class TITAN_API Work {
 public:
  virtual ~Work();
  /// Makes the result visible to the current stream (or thread). Throws the errors of the
  /// transport. Called once.
  virtual void wait() = 0;
};

/// Operations of a process group. Implemented per transport (gloo, NCCL, one rank, fake); other
/// code uses Group.
///
/// Each call starts the operation and returns its work, or null if it is done already. Tensors are
/// contiguous and on the group's device. Thread: one at a time; calls come in the same order on all
/// ranks.
class TITAN_API Backend {
 public:
  virtual ~Backend();
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// `inout` of every rank becomes the reduction over all ranks.
  virtual std::shared_ptr<Work> all_reduce(const at::Tensor& inout, Reduce reduce) = 0;
  /// `out` (size x in, along dim 0) becomes every rank's `in` in rank order.
  virtual std::shared_ptr<Work> all_gather(const at::Tensor& out, const at::Tensor& in) = 0;
  /// `out` becomes this rank's chunk of the reduction of `in` (size x out, along dim 0).
  virtual std::shared_ptr<Work> reduce_scatter(const at::Tensor& out, const at::Tensor& in,
                                               Reduce reduce) = 0;
  /// Chunk r of `in` goes to rank r; chunk r of `out` comes from rank r: `splits` rows along dim 0.
  virtual std::shared_ptr<Work> all_to_all(const at::Tensor& out, const at::Tensor& in,
                                           const RowSplits& splits) = 0;
  /// `inout` of every rank becomes that of `root`.
  virtual std::shared_ptr<Work> broadcast(const at::Tensor& inout, int root) = 0;
  /// `tag` distinguishes messages between the same two ranks.
  virtual std::shared_ptr<Work> send(const at::Tensor& tensor, int peer, int tag) = 0;
  virtual std::shared_ptr<Work> receive(const at::Tensor& tensor, int peer, int tag) = 0;
  virtual std::shared_ptr<Work> barrier() = 0;
  /// Applies to operations that are started from now on.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;

  /// [any thread] Ends operations in flight if the transport can. Their `wait` and all later
  /// operations throw an error that contains `reason`. Operations that the transport cannot end
  /// continue until their timeout. The default does nothing.
  virtual void abort(const std::string& reason);
};

/// The backend of a single rank: every collective returns its own input.
TITAN_API std::shared_ptr<Backend> make_single_rank_backend();
/// A simulated rank of `size` ranks, without communication. Gathers act as if the other ranks held
/// this rank's data, sums as if they held zeros. In an all-to-all each peer echoes the rows that it
/// was sent, truncated or zero-padded to `splits`. For dry runs of any layout; works on the meta
/// device too.
TITAN_API std::shared_ptr<Backend> make_fake_backend(int rank, int size);

/// A collective that was started. Copies share it.
class TITAN_API Pending {
 public:
  /// A collective that is done already.
  Pending() = default;
  /// `ticket`: returned by `recorder->start`.
  Pending(std::shared_ptr<Work> work, std::shared_ptr<Recorder> recorder, int64_t ticket);

  /// Makes the result visible to the current stream (or thread); a second call does nothing.
  /// Throws a distributed Error that names the collective when it failed or timed out.
  void wait();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Cheap to copy; copies share the backend (hence the shared pointer). Each call starts its
/// operation; `wait()` of the returned Pending completes it. Tensors must be contiguous and stay
/// untouched until then. All ranks of the group call the same operations in the same order.
class TITAN_API Group {
 public:
  /// A group of this rank alone.
  Group();
  Group(std::string name, std::shared_ptr<Backend> backend,
        std::shared_ptr<Recorder> recorder = nullptr);

  const std::string& name() const { return name_; }
  int rank() const { return backend_->rank(); }
  int size() const { return backend_->size(); }
  /// Records every operation of this group.
  Recorder& recorder() const { return *recorder_; }

  /// See Backend for what each does.
  [[nodiscard]] Pending all_reduce(const at::Tensor& inout, Reduce reduce) const;
  [[nodiscard]] Pending all_gather(const at::Tensor& out, const at::Tensor& in) const;
  [[nodiscard]] Pending reduce_scatter(const at::Tensor& out, const at::Tensor& in,
                                       Reduce reduce) const;
  /// Throws an internal Error when `splits` do not have a number for each rank, or do not add up to
  /// the rows of the tensors.
  [[nodiscard]] Pending all_to_all(const at::Tensor& out, const at::Tensor& in,
                                   const RowSplits& splits = {}) const;
  [[nodiscard]] Pending broadcast(const at::Tensor& inout, int root) const;
  [[nodiscard]] Pending send(const at::Tensor& tensor, int peer, int tag) const;
  [[nodiscard]] Pending receive(const at::Tensor& tensor, int peer, int tag) const;
  void barrier() const;
  void set_timeout(std::chrono::milliseconds timeout) const { backend_->set_timeout(timeout); }
  void abort(const std::string& reason) const { backend_->abort(reason); }

  /// Reduction of one number; the trainer's counters use it. `device`: where the group
  /// communicates.
  int64_t all_reduce(int64_t value, Reduce reduce, c10::Device device = c10::kCPU) const;
  double all_reduce(double value, Reduce reduce, c10::Device device = c10::kCPU) const;

 private:
  template <class Start>
  Pending record(const char* operation, int64_t bytes, const Start& start, int peer = -1) const;

  std::string name_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<Recorder> recorder_;  // never null
};

}  // namespace titan::dist
