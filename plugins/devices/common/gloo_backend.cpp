#include "gloo_backend.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <titan/error.h>

#include "reduce_op.h"
#include "sum_chunks.h"

namespace titan::cpu {
namespace {

using at::Tensor;
using dist::Reduce;
using dist::Work;

/// One collective of gloo; gloo applies the timeout.
class GlooWork final : public Work {
 public:
  explicit GlooWork(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  void wait() override { work_->wait(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

/// Messages that are waited for in one wait(), followed by `finish`. The timeout is passed to
/// gloo's wait, which would otherwise use that of the time when the connection was made.
class Messages final : public Work {
 public:
  Messages(std::vector<c10::intrusive_ptr<c10d::Work>> works, std::chrono::milliseconds timeout,
           std::function<void()> finish)
      : works_(std::move(works)), timeout_(timeout), finish_(std::move(finish)) {}

  void wait() override {
    for (const auto& work : works_)
      if (!work->wait(timeout_)) throw std::runtime_error("it was aborted: " + reason_);
    if (finish_) finish_();
  }

  /// [any thread] Ends the wait of all messages that have not arrived.
  void abort(const std::string& reason) {
    reason_ = reason;  // visible to the waiting thread: gloo's lock orders both
    for (const auto& work : works_) work->abort();
  }

 private:
  std::string reason_;
  std::vector<c10::intrusive_ptr<c10d::Work>> works_;
  std::chrono::milliseconds timeout_;
  std::function<void()> finish_;
};

class GlooBackend final : public dist::Backend {
 public:
  GlooBackend(c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo, std::chrono::milliseconds timeout)
      : gloo_(std::move(gloo)), timeout_(timeout) {}

  int rank() const override { return gloo_->getRank(); }
  int size() const override { return gloo_->getSize(); }

  std::shared_ptr<Work> all_reduce(const Tensor& inout, Reduce reduce) override {
    require_open();
    std::vector<Tensor> tensors = {inout};
    c10d::AllreduceOptions options;
    options.reduceOp = to_c10d(reduce);
    return std::make_shared<GlooWork>(gloo_->allreduce(tensors, options));
  }

  /// Each rank sends its chunk to all others at once: no copies on the way, unlike gloo's own ring.
  std::shared_ptr<Work> all_gather(const Tensor& out, const Tensor& in) override {
    if (in.numel() == 0) return nullptr;
    Tensor chunks = out.view({size(), -1});
    const Tensor flat = in.view({-1});
    if (chunks[rank()].data_ptr() != flat.data_ptr()) chunks[rank()].copy_(flat);
    return exchange([&](int peer) { return chunks[peer]; }, [&](int) { return flat; }, nullptr);
  }

  /// Each rank sends every other rank its chunk and adds up the chunks it receives. Moves half the
  /// bytes of the all-reduce that gloo would run, and adds in a fixed order.
  std::shared_ptr<Work> reduce_scatter(const Tensor& out, const Tensor& in,
                                       Reduce reduce) override {
    TITAN_CHECK(reduce == Reduce::sum, internal, "reduce_scatter over gloo sums only");
    if (out.numel() == 0) return nullptr;
    const Tensor sent = in.view({size(), -1});
    Tensor received = at::empty(sent.sizes(), in.options());
    received[rank()].copy_(sent[rank()]);
    return exchange([&](int peer) { return received[peer]; }, [&](int peer) { return sent[peer]; },
                    [out, received] { sum_chunks(out, received); });
  }

  std::shared_ptr<Work> all_to_all(const Tensor& out, const Tensor& in,
                                   const dist::RowSplits& splits) override {
    const std::vector<Tensor> received = rows_by_rank(out, splits.received);
    const std::vector<Tensor> sent = rows_by_rank(in, splits.sent);
    const auto own = static_cast<size_t>(rank());
    received[own].copy_(sent[own]);
    return exchange([&](int peer) { return received[static_cast<size_t>(peer)]; },
                    [&](int peer) { return sent[static_cast<size_t>(peer)]; }, nullptr);
  }

  std::shared_ptr<Work> broadcast(const Tensor& inout, int root) override {
    require_open();
    std::vector<Tensor> tensors = {inout};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return std::make_shared<GlooWork>(gloo_->broadcast(tensors, options));
  }

  std::shared_ptr<Work> send(const Tensor& tensor, int peer, int tag) override {
    require_open();
    std::vector<Tensor> tensors = {tensor};
    return messages({gloo_->send(tensors, peer, tag)}, nullptr);
  }
  std::shared_ptr<Work> receive(const Tensor& tensor, int peer, int tag) override {
    require_open();
    std::vector<Tensor> tensors = {tensor};
    return messages({gloo_->recv(tensors, peer, tag)}, nullptr);
  }

  std::shared_ptr<Work> barrier() override {
    require_open();
    return std::make_shared<GlooWork>(gloo_->barrier(c10d::BarrierOptions()));
  }

  void set_timeout(std::chrono::milliseconds timeout) override {
    timeout_ = timeout;
    gloo_->setTimeout(timeout);
  }

  /// Aborts messages, of which most collectives consist. gloo's own all-reduce, broadcast and
  /// barrier cannot be aborted from outside.
  void abort(const std::string& reason) override {
    const std::lock_guard lock(mutex_);
    if (is_aborted_) return;
    reason_ = reason;
    is_aborted_ = true;
    for (const std::weak_ptr<Messages>& started : started_)
      if (const auto messages = started.lock()) messages->abort(reason);
  }

 private:
  std::shared_ptr<Work> messages(std::vector<c10::intrusive_ptr<c10d::Work>> works,
                                 std::function<void()> finish) {
    auto messages = std::make_shared<Messages>(std::move(works), timeout_, std::move(finish));
    const std::lock_guard lock(mutex_);
    std::erase_if(started_, [](const std::weak_ptr<Messages>& m) { return m.expired(); });
    started_.push_back(messages);
    if (is_aborted_) messages->abort(reason_);  // aborted since require_open
    return messages;
  }

  void require_open() const {
    if (!is_aborted_) return;
    const std::lock_guard lock(mutex_);
    throw std::runtime_error("the group was aborted: " + reason_);
  }

  /// Views of the rows that go to or come from each rank. Empty `counts`: equal chunks.
  std::vector<Tensor> rows_by_rank(const Tensor& rows, const std::vector<int64_t>& counts) const {
    if (!counts.empty()) return rows.split_with_sizes(counts);
    const int64_t count = rows.size(0) / size();
    return rows.split_with_sizes(std::vector<int64_t>(static_cast<size_t>(size()), count));
  }

  /// `place_for(p)` receives the chunk of rank p, `chunk_for(p)` is sent to rank p; own chunks are
  /// in place already. An empty chunk is not sent, and its receiver expects no message.
  template <class PlaceFor, class ChunkFor>
  std::shared_ptr<Work> exchange(const PlaceFor& place_for, const ChunkFor& chunk_for,
                                 std::function<void()> finish) {
    require_open();
    // above all tags of send and receive; when it wraps around, its old messages have long arrived
    const int tag = (1 << 24) + (next_exchange_++ & 0xFFFFFF);
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (int step = 1; step < size(); ++step) {  // each rank starts with its right neighbour
      const int to = (rank() + step) % size(), from = (rank() - step + size()) % size();
      std::vector<Tensor> out = {chunk_for(to)}, in = {place_for(from)};
      if (in[0].numel() > 0) works.push_back(gloo_->recv(in, from, tag));
      if (out[0].numel() > 0) works.push_back(gloo_->send(out, to, tag));
    }
    return messages(std::move(works), std::move(finish));
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  std::chrono::milliseconds timeout_;
  int next_exchange_ = 0;
  std::atomic<bool> is_aborted_ = false;
  mutable std::mutex mutex_;
  std::string reason_;                            // why it was aborted
  std::vector<std::weak_ptr<Messages>> started_;  // some may be done
};

}  // namespace

std::shared_ptr<dist::Backend> connect_gloo(const dist::Endpoint& endpoint) {
  using Gloo = c10d::ProcessGroupGloo;
  try {
    const auto store = c10::make_intrusive<c10d::PrefixStore>(
        endpoint.name + "/", c10::intrusive_ptr<c10d::Store>::reclaim_copy(&endpoint.store));
    const auto options = Gloo::Options::create(endpoint.timeout);
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    if (interface && *interface)
      options->devices.push_back(Gloo::createDeviceForInterface(interface));
    else if (endpoint.is_one_host)
      options->devices.push_back(Gloo::createDeviceForHostname("127.0.0.1"));
    else
      options->devices.push_back(Gloo::createDefaultDevice());
    return std::make_shared<GlooBackend>(
        c10::make_intrusive<Gloo>(store, endpoint.rank, endpoint.size, options), endpoint.timeout);
  } catch (const std::exception& e) {
    const std::string text = e.what();
    fail(ErrorKind::distributed, "rank ", endpoint.rank, " of ", endpoint.size,
         " could not connect group '", endpoint.name, "' over gloo within ",
         std::chrono::duration<double>(endpoint.timeout).count(),
         " s: ", text.substr(0, text.find('\n')));
  }
}

}  // namespace titan::cpu
