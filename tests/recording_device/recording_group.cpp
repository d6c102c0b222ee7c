#include "recording_group.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "host_kernels.h"
#include "memory.h"
#include "plugins/devices/common/gloo_backend.h"

namespace titan::recording {
namespace {

using at::Tensor;
using dist::Reduce;
using dist::Work;

constexpr StreamId kFirstOfGroups = 100;

/// Like ProcessGroupNCCL: `wait` blocks the current stream, not the host; tensors live until then.
class RecordedWork final : public Work {
 public:
  RecordedWork(std::shared_ptr<Work> inner, Clock done, std::vector<Tensor> tensors)
      : inner_(std::move(inner)), done_(std::move(done)), tensors_(std::move(tensors)) {}

  void wait() override {
    if (inner_) std::exchange(inner_, nullptr)->wait();
    order().wait(current_stream(), done_);
    tensors_.clear();
  }

 private:
  std::shared_ptr<Work> inner_;
  Clock done_;
  std::vector<Tensor> tensors_;
};

class RecordedGroup final : public dist::Backend {
 public:
  RecordedGroup(std::shared_ptr<dist::Backend> gloo, StreamId stream)
      : gloo_(std::move(gloo)), stream_(stream) {}

  int rank() const override { return gloo_->rank(); }
  int size() const override { return gloo_->size(); }

  std::shared_ptr<Work> all_reduce(const Tensor& inout, Reduce reduce) override {
    return start("all_reduce", {}, {inout},
                 [&](const auto& here) { return gloo_->all_reduce(here(inout), reduce); });
  }
  std::shared_ptr<Work> all_gather(const Tensor& out, const Tensor& in) override {
    return start("all_gather", {in}, {out},
                 [&](const auto& here) { return gloo_->all_gather(here(out), here(in)); });
  }
  std::shared_ptr<Work> reduce_scatter(const Tensor& out, const Tensor& in,
                                       Reduce reduce) override {
    return start("reduce_scatter", {in}, {out}, [&](const auto& here) {
      return gloo_->reduce_scatter(here(out), here(in), reduce);
    });
  }
  std::shared_ptr<Work> all_to_all(const Tensor& out, const Tensor& in,
                                   const dist::RowSplits& splits) override {
    return start("all_to_all", {in}, {out},
                 [&](const auto& here) { return gloo_->all_to_all(here(out), here(in), splits); });
  }
  std::shared_ptr<Work> broadcast(const Tensor& inout, int root) override {
    return start("broadcast", {}, {inout},
                 [&](const auto& here) { return gloo_->broadcast(here(inout), root); });
  }
  std::shared_ptr<Work> send(const Tensor& tensor, int peer, int tag) override {
    return start("send", {tensor}, {},
                 [&](const auto& here) { return gloo_->send(here(tensor), peer, tag); });
  }
  std::shared_ptr<Work> receive(const Tensor& tensor, int peer, int tag) override {
    return start("receive", {}, {tensor},
                 [&](const auto& here) { return gloo_->receive(here(tensor), peer, tag); });
  }
  /// NCCL's blocks the host.
  std::shared_ptr<Work> barrier() override {
    order().note("barrier");
    return gloo_->barrier();
  }
  void set_timeout(std::chrono::milliseconds timeout) override { gloo_->set_timeout(timeout); }
  void abort(const std::string& reason) override { gloo_->abort(reason); }

 private:
  template <class Run>
  std::shared_ptr<Work> start(const char* what, std::vector<Tensor> read,
                              const std::vector<Tensor>& written, const Run& run) {
    SharedMemory memory;
    std::vector<Access> accesses;
    bool is_here = true;
    const auto note = [&](const Tensor& tensor, bool is_write) {
      if (tensor.is_cpu()) return;
      is_here = false;
      accesses.push_back(access_of(tensor, is_write));
    };
    for (const Tensor& tensor : read) note(tensor, false);
    for (const Tensor& tensor : written) note(tensor, true);
    const auto here = [&](const Tensor& tensor) {
      return tensor.is_cpu() ? tensor : memory.on_host(tensor);
    };
    if (is_here) return run(here);
    order().wait(stream_, order().record(current_stream()));
    order().launch(what, stream_, accesses);
    std::shared_ptr<Work> inner = run(here);
    read.insert(read.end(), written.begin(), written.end());
    return std::make_shared<RecordedWork>(std::move(inner), order().record(stream_),
                                          std::move(read));
  }

  std::shared_ptr<dist::Backend> gloo_;
  StreamId stream_;
};

}  // namespace

std::shared_ptr<dist::Backend> connect_recorded(const dist::Endpoint& endpoint) {
  static std::atomic<StreamId> next = kFirstOfGroups;
  return std::make_shared<RecordedGroup>(cpu::connect_gloo(endpoint), next++);
}

}  // namespace titan::recording
