#include "nccl_backend.h"

#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/cuda/CUDAContextLight.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <titan/error.h>
#include <titan/program/host.h>

#include "../common/gloo_backend.h"
#include "../common/reduce_op.h"
#include "rank_rendezvous.h"

namespace titan::cuda {
namespace {

using at::Tensor;
using dist::Reduce;
using dist::Work;
using Nccl = c10d::ProcessGroupNCCL;

class NcclWork final : public Work {
 public:
  explicit NcclWork(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}

  void wait() override {
    work_->wait();
    if (const std::exception_ptr error = work_->exception()) std::rethrow_exception(error);
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

/// gloo between the same ranks, connected at the first collective on a CPU tensor: most groups have
/// none. All ranks of a group call the same collectives in the same order, so all connect at once.
class HostSide {
 public:
  explicit HostSide(const dist::Endpoint& endpoint)
      : store_(c10::intrusive_ptr<c10d::Store>::reclaim_copy(&endpoint.store)),
        name_(endpoint.name + "/host"),
        rank_(endpoint.rank),
        size_(endpoint.size),
        timeout_(endpoint.timeout),
        is_one_host_(endpoint.is_one_host) {}

  dist::Backend& backend() {
    const std::lock_guard lock(mutex_);
    if (!gloo_) gloo_ = cpu::connect_gloo({*store_, name_, rank_, size_, timeout_, is_one_host_});
    return *gloo_;
  }
  void set_timeout(std::chrono::milliseconds timeout) {
    const std::lock_guard lock(mutex_);
    timeout_ = timeout;
    if (gloo_) gloo_->set_timeout(timeout);
  }
  void abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (gloo_) gloo_->abort(reason);
  }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  std::string name_;
  int rank_, size_;
  std::chrono::milliseconds timeout_;
  bool is_one_host_;
  std::mutex mutex_;
  std::shared_ptr<dist::Backend> gloo_;  // null before the first CPU tensor
};

class NcclBackend final : public dist::Backend {
 public:
  NcclBackend(c10::intrusive_ptr<Nccl> nccl, c10::Device device, const dist::Endpoint& endpoint)
      : nccl_(std::move(nccl)), device_(device), host_(endpoint) {}

  /// Shuts the communicator down in order. While an exception propagates, other ranks may never
  /// respond, so the communicator is aborted instead.
  ~NcclBackend() override {
    try {
      if (std::uncaught_exceptions() > 0)
        nccl_->abort();
      else
        nccl_->shutdown();
    } catch (const std::exception&) {
      // a destructor cannot report it, and all results have been waited for
    }
  }

  int rank() const override { return nccl_->getRank(); }
  int size() const override { return nccl_->getSize(); }

  std::shared_ptr<Work> all_reduce(const Tensor& inout, Reduce reduce) override {
    if (inout.is_cpu()) return host_.backend().all_reduce(inout, reduce);
    std::vector<Tensor> tensors = {inout};
    c10d::AllreduceOptions options;
    options.reduceOp = cpu::to_c10d(reduce);
    return started(nccl_->allreduce(tensors, options));
  }

  std::shared_ptr<Work> all_gather(const Tensor& out, const Tensor& in) override {
    if (in.is_cpu()) return host_.backend().all_gather(out, in);
    Tensor to = out, from = in;
    return started(nccl_->_allgather_base(to, from));
  }

  std::shared_ptr<Work> reduce_scatter(const Tensor& out, const Tensor& in,
                                       Reduce reduce) override {
    if (in.is_cpu()) return host_.backend().reduce_scatter(out, in, reduce);
    Tensor to = out, from = in;
    c10d::ReduceScatterOptions options;
    options.reduceOp = cpu::to_c10d(reduce);
    return started(nccl_->_reduce_scatter_base(to, from, options));
  }

  /// NCCL's grouped sends and receives; a peer without rows gets no message.
  std::shared_ptr<Work> all_to_all(const Tensor& out, const Tensor& in,
                                   const dist::RowSplits& splits) override {
    if (in.is_cpu()) return host_.backend().all_to_all(out, in, splits);
    Tensor to = out, from = in;
    std::vector<int64_t> received = splits.received, sent = splits.sent;
    return started(nccl_->alltoall_base(to, from, received, sent));
  }

  std::shared_ptr<Work> broadcast(const Tensor& inout, int root) override {
    if (inout.is_cpu()) return host_.backend().broadcast(inout, root);
    std::vector<Tensor> tensors = {inout};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return started(nccl_->broadcast(tensors, options));
  }

  std::shared_ptr<Work> send(const Tensor& tensor, int peer, int tag) override {
    if (tensor.is_cpu()) return host_.backend().send(tensor, peer, tag);
    std::vector<Tensor> tensors = {tensor};
    return started(nccl_->send(tensors, peer, tag));
  }
  std::shared_ptr<Work> receive(const Tensor& tensor, int peer, int tag) override {
    if (tensor.is_cpu()) return host_.backend().receive(tensor, peer, tag);
    std::vector<Tensor> tensors = {tensor};
    return started(nccl_->recv(tensors, peer, tag));
  }

  std::shared_ptr<Work> barrier() override {
    c10d::BarrierOptions options;
    options.device_ids = {device_.index()};
    return started(nccl_->barrier(options));
  }

  void set_timeout(std::chrono::milliseconds timeout) override {
    nccl_->setTimeout(timeout);
    host_.set_timeout(timeout);
  }

  /// Ends kernels that wait for other ranks; their results are undefined.
  void abort(const std::string& reason) override {
    nccl_->abort();
    host_.abort(reason);
  }

 private:
  static std::shared_ptr<Work> started(c10::intrusive_ptr<c10d::Work> work) {
    if (!work) return nullptr;
    return std::make_shared<NcclWork>(std::move(work));
  }

  c10::intrusive_ptr<Nccl> nccl_;
  c10::Device device_;
  HostSide host_;
};

/// "host a0b1...": identifies a GPU within a cluster.
std::string identity_of(c10::Device device) {
  std::string identity = host_name() + " ";
  constexpr const char* kDigits = "0123456789abcdef";
  for (const char byte : at::cuda::getDeviceProperties(device.index())->uuid.bytes) {
    identity += kDigits[static_cast<unsigned char>(byte) >> 4];
    identity += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return identity;
}

}  // namespace

std::shared_ptr<dist::Backend> connect_nccl(const dist::Endpoint& endpoint, c10::Device device) {
  try {
    const auto store = c10::make_intrusive<c10d::PrefixStore>(
        endpoint.name + "/", c10::intrusive_ptr<c10d::Store>::reclaim_copy(&endpoint.store));
    await_all_ranks(*store, endpoint, identity_of(device));
    const auto options = Nccl::Options::create();
    options->timeout = endpoint.timeout;
    options->group_name = endpoint.name;
    options->group_desc = endpoint.name;
    auto nccl = c10::make_intrusive<Nccl>(store, endpoint.rank, endpoint.size, options);
    nccl->eagerConnectSingleDevice(device);
    return std::make_shared<NcclBackend>(std::move(nccl), device, endpoint);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    const std::string text = e.what();
    fail(ErrorKind::distributed, "rank ", endpoint.rank, " of ", endpoint.size,
         " could not connect group '", endpoint.name, "' over nccl within ",
         std::chrono::duration<double>(endpoint.timeout).count(),
         " s: ", text.substr(0, text.find('\n')));
  }
}

}  // namespace titan::cuda
