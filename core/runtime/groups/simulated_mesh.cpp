#include "core/runtime/groups/simulated_mesh.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/empty_like.h>

#include <titan/memory_use.h>

namespace titan::core {
namespace {

using at::Tensor;
using dist::Reduce;
using dist::Work;

/// A collective in flight: keeps its tensors alive.
class Held final : public Work {
 public:
  explicit Held(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  void wait() override { tensors_.clear(); }

 private:
  std::vector<Tensor> tensors_;
};

std::shared_ptr<Work> hold(std::vector<Tensor> tensors) {
  return std::make_shared<Held>(std::move(tensors));
}

/// A backend on the meta device, where there is no data to move.
class SimulatedBackend final : public dist::Backend {
 public:
  SimulatedBackend(int rank, int size, const SimulatedTransport& transport)
      : rank_(rank), size_(size), transport_(transport) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::shared_ptr<Work> all_reduce(const Tensor& inout, Reduce) override { return hold({inout}); }
  std::shared_ptr<Work> all_gather(const Tensor& out, const Tensor& in) override {
    return hold({out, in});
  }
  std::shared_ptr<Work> reduce_scatter(const Tensor& out, const Tensor& in, Reduce) override {
    if (!transport_.receives_beside) return hold({out, in});
    const MemoryUseScope use(MemoryUse::communication);
    return hold({out, in, at::empty_like(in)});
  }
  std::shared_ptr<Work> all_to_all(const Tensor& out, const Tensor& in,
                                   const dist::RowSplits&) override {
    return hold({out, in});
  }
  std::shared_ptr<Work> broadcast(const Tensor& inout, int) override { return hold({inout}); }
  std::shared_ptr<Work> send(const Tensor& tensor, int, int) override { return hold({tensor}); }
  std::shared_ptr<Work> receive(const Tensor& tensor, int, int) override { return hold({tensor}); }
  std::shared_ptr<Work> barrier() override { return nullptr; }
  void set_timeout(std::chrono::milliseconds) override {}

 private:
  int rank_, size_;
  SimulatedTransport transport_;
};

}  // namespace

dist::Mesh simulated_mesh(const dist::Grid& grid, int rank, const SimulatedTransport& transport) {
  const auto connect = [&](const std::string&, const std::vector<int>& ranks) {
    const auto place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return std::make_shared<SimulatedBackend>(static_cast<int>(place),
                                              static_cast<int>(ranks.size()), transport);
  };
  return dist::Mesh(grid, rank, connect);
}

}  // namespace titan::core
