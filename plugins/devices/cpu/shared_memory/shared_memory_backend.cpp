#include "shared_memory_backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/ScalarType.h>
#include <titan/error.h>

#include "../../common/sum_chunks.h"
#include "reduce_kernels.h"

namespace titan::cpu {
namespace {

using at::Tensor;
using dist::Reduce;
using dist::Work;

/// From this size on each rank reduces one block and publishes it, instead of reducing everything.
constexpr uint64_t kReduceInBlocks = 32 << 10;

std::byte* bytes_of(const Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

class SharedMemoryWork final : public Work {
 public:
  SharedMemoryWork(std::shared_ptr<Engine> engine, std::shared_ptr<Operation> operation,
                   std::chrono::milliseconds timeout)
      : engine_(std::move(engine)), operation_(std::move(operation)), timeout_(timeout) {}

  void wait() override {
    engine_->wait(*operation_, timeout_);
    if (operation_->finish) operation_->finish();
  }

 private:
  std::shared_ptr<Engine> engine_;  // outlives the backend during a wait
  std::shared_ptr<Operation> operation_;
  std::chrono::milliseconds timeout_;
};

/// Reduces bytes of one block in the order of gloo's ring: those of rank `block` - 1 are combined
/// with those of the rank before, and so on down to rank `block`.
class BlockReduction {
 public:
  BlockReduction(Combine combine, uint64_t element_size, int size)
      : combine_(combine), element_size_(element_size), size_(size) {}

  /// `sources[r]`: bytes of rank r; `out` may be one of the sources.
  void reduce(int block, std::byte* out, const std::byte* const* sources, uint64_t bytes) const {
    alignas(kLine) std::array<std::byte, 8192> partial;
    for (uint64_t done = 0; done < bytes; done += partial.size()) {
      const uint64_t count = std::min(partial.size(), bytes - done) / element_size_;
      const auto of = [&](int step) { return sources[(block - step + size_) % size_] + done; };
      const std::byte* sum = of(1);
      for (int step = 2; step < size_; ++step) {
        combine_(partial.data(), of(step), sum, count);
        sum = partial.data();
      }
      combine_(out + done, of(size_), sum, count);
    }
  }

 private:
  Combine combine_;
  uint64_t element_size_;
  int size_;
};

class SharedMemoryBackend final : public dist::Backend {
 public:
  SharedMemoryBackend(Members members, std::chrono::milliseconds timeout)
      : engine_(std::make_shared<Engine>(std::move(members))), timeout_(timeout) {}

  int rank() const override { return engine_->rank(); }
  int size() const override { return engine_->size(); }

  std::shared_ptr<Work> all_reduce(const Tensor& inout, Reduce reduce) override {
    if (inout.is_complex() && reduce == Reduce::sum)
      return all_reduce(at::view_as_real(inout), reduce);
    const Combine combine = combine_function(inout.scalar_type(), reduce);
    require_taken(combine != nullptr);
    const uint64_t bytes = inout.nbytes();
    if (bytes == 0) return nullptr;
    const BlockReduction reduction(combine, inout.element_size(), size());
    const RingBlocks blocks(static_cast<uint64_t>(inout.numel()), inout.element_size(), size());
    return size() > 2 && bytes >= kReduceInBlocks ? reduce_own_block(inout, reduction, blocks)
                                                  : reduce_everything(inout, reduction, blocks);
  }

  std::shared_ptr<Work> all_gather(const Tensor& out, const Tensor& in) override {
    if (in.numel() == 0) return nullptr;
    const uint64_t bytes = in.nbytes();
    std::byte* own = bytes_of(out) + static_cast<uint64_t>(rank()) * bytes;
    if (own != bytes_of(in)) std::memcpy(own, bytes_of(in), bytes);
    auto operation = new_operation({out, in});
    operation->outgoing.emplace_back(engine_->publish(), own, bytes);
    for_others([&](int peer) {
      operation->incoming.emplace_back(engine_->published_by(peer),
                                       bytes_of(out) + static_cast<uint64_t>(peer) * bytes, bytes);
    });
    return start(std::move(operation));
  }

  std::shared_ptr<Work> reduce_scatter(const Tensor& out, const Tensor& in,
                                       Reduce reduce) override {
    TITAN_CHECK(reduce == Reduce::sum, internal, "reduce_scatter on the CPU sums only");
    if (out.numel() == 0) return nullptr;
    const SumInOrder sum = sum_function(out.scalar_type());
    // ATen adds 16-bit values of five or more ranks in another order at the end of a row
    const bool is_by_aten =
        !sum || out.is_alias_of(in) || (at::isReducedFloatingType(out.scalar_type()) && size() > 4);
    const uint64_t bytes = out.nbytes(), element_size = out.element_size();
    std::byte* from = bytes_of(in);
    auto operation = new_operation({out, in});
    for_others([&](int peer) {
      operation->outgoing.emplace_back(engine_->to(peer),
                                       from + static_cast<uint64_t>(peer) * bytes, bytes);
    });
    const std::byte* own = from + static_cast<uint64_t>(rank()) * bytes;
    if (is_by_aten) {
      const Tensor sent = in.view({size(), -1});
      const Tensor received = at::empty(sent.sizes(), in.options());
      received[rank()].copy_(sent[rank()]);
      operation->tensors.push_back(received);
      for_others([&](int peer) {
        operation->incoming.emplace_back(
            engine_->from(peer), bytes_of(received) + static_cast<uint64_t>(peer) * bytes, bytes);
      });
      operation->finish = [out, received] { sum_chunks(out, received); };
      return start(std::move(operation));
    }
    std::vector<const std::byte*> all(static_cast<size_t>(size()));
    const auto use = [sum, own, all, rank = rank(), element_size, to = bytes_of(out)](
                         uint64_t offset, uint64_t count, const std::byte* const* sources) mutable {
      std::copy_n(sources, all.size(), all.begin());
      all[static_cast<size_t>(rank)] = own + offset;
      sum(to + offset, all.data(), all.size(), count / element_size);
    };
    operation->fan_in.emplace(channels([&](int peer) { return &engine_->from(peer); }), size(),
                              bytes, use);
    return start(std::move(operation));
  }

  std::shared_ptr<Work> all_to_all(const Tensor& out, const Tensor& in,
                                   const dist::RowSplits& splits) override {
    const std::vector<Tensor> received = rows_by_rank(out, splits.received);
    const std::vector<Tensor> sent = rows_by_rank(in, splits.sent);
    const auto own = static_cast<size_t>(rank());
    received[own].copy_(sent[own]);
    auto operation = new_operation({out, in});
    for_others([&](int peer) {
      const Tensor& rows = sent[static_cast<size_t>(peer)];
      operation->outgoing.emplace_back(engine_->to(peer), rows.data_ptr(), rows.nbytes());
      const Tensor& place = received[static_cast<size_t>(peer)];
      operation->incoming.emplace_back(engine_->from(peer), place.data_ptr(), place.nbytes());
    });
    return start(std::move(operation));
  }

  std::shared_ptr<Work> broadcast(const Tensor& inout, int root) override {
    require_taken(combine_function(c10::toRealValueType(inout.scalar_type()), Reduce::sum) !=
                  nullptr);
    auto operation = new_operation({inout});
    if (root == rank())
      operation->outgoing.emplace_back(engine_->publish(), bytes_of(inout), inout.nbytes());
    else
      operation->incoming.emplace_back(engine_->published_by(root), bytes_of(inout),
                                       inout.nbytes());
    return start(std::move(operation));
  }

  std::shared_ptr<Work> send(const Tensor& tensor, int peer, int tag) override {
    auto operation = new_operation({tensor});
    operation->outgoing.emplace_back(engine_->mail_to(peer), bytes_of(tensor), tensor.nbytes(),
                                     tag);
    return start(std::move(operation));
  }
  std::shared_ptr<Work> receive(const Tensor& tensor, int peer, int tag) override {
    auto operation = new_operation({tensor});
    operation->expected = {
        .rank = peer, .tag = tag, .place = bytes_of(tensor), .bytes = tensor.nbytes()};
    return start(std::move(operation));
  }

  std::shared_ptr<Work> barrier() override {
    auto operation = new_operation({});
    operation->outgoing.emplace_back(engine_->publish(), nullptr, 0);
    for_others([&](int peer) {
      operation->incoming.emplace_back(engine_->published_by(peer), nullptr, 0);
    });
    return start(std::move(operation));
  }

  void set_timeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }
  void abort(const std::string& reason) override { engine_->abort(reason); }

 private:
  /// Every rank publishes its whole buffer and reduces all buffers: one communication step.
  std::shared_ptr<Work> reduce_everything(const Tensor& inout, const BlockReduction& reduction,
                                          const RingBlocks& blocks) {
    auto operation = new_operation({inout});
    const uint64_t bytes = inout.nbytes();
    operation->outgoing.emplace_back(engine_->publish(), bytes_of(inout), bytes);
    std::vector<const std::byte*> all(static_cast<size_t>(size()));
    const auto use = [reduction, blocks, all, rank = rank(), own = bytes_of(inout)](
                         uint64_t offset, uint64_t count, const std::byte* const* sources) mutable {
      for (uint64_t at = offset; at < offset + count;) {
        const int block = blocks.block_of(at);
        const uint64_t end = std::min(offset + count, blocks.end(block));
        for (size_t r = 0; r < all.size(); ++r)
          all[r] = static_cast<int>(r) == rank ? own + at : sources[r] + (at - offset);
        reduction.reduce(block, own + at, all.data(), end - at);
        at = end;
      }
    };
    // published bytes may be overwritten
    operation->fan_in.emplace(channels([&](int peer) { return &engine_->published_by(peer); }),
                              size(), bytes, use, &operation->outgoing.front().sent());
    return start(std::move(operation));
  }

  /// Every rank receives the others' parts of its block, reduces it and publishes the result.
  std::shared_ptr<Work> reduce_own_block(const Tensor& inout, const BlockReduction& reduction,
                                         const RingBlocks& blocks) {
    auto operation = new_operation({inout});
    std::byte* data = bytes_of(inout);
    const auto length = [&](int block) { return blocks.end(block) - blocks.begin(block); };
    for_others([&](int peer) {
      operation->outgoing.emplace_back(engine_->to(peer), data + blocks.begin(peer), length(peer));
    });
    std::vector<const std::byte*> all(static_cast<size_t>(size()));
    const auto use = [reduction, all, rank = rank(), own = data + blocks.begin(rank())](
                         uint64_t offset, uint64_t count, const std::byte* const* sources) mutable {
      std::copy_n(sources, all.size(), all.begin());
      all[static_cast<size_t>(rank)] = own + offset;
      reduction.reduce(rank, own + offset, all.data(), count);
    };
    operation->fan_in.emplace(channels([&](int peer) { return &engine_->from(peer); }), size(),
                              length(rank()), use);
    operation->outgoing.emplace_back(engine_->publish(), data + blocks.begin(rank()),
                                     length(rank()), 0, &operation->fan_in->done());
    // the result of a byte comes after its rank has read this rank's old value of the byte
    for_others([&](int peer) {
      operation->incoming.emplace_back(engine_->published_by(peer), data + blocks.begin(peer),
                                       length(peer));
    });
    return start(std::move(operation));
  }

  std::shared_ptr<Operation> new_operation(std::vector<Tensor> tensors) {
    auto operation = std::make_shared<Operation>();
    operation->tensors = std::move(tensors);
    // other parts point to these: they must not move
    operation->outgoing.reserve(static_cast<size_t>(size()) + 1);
    operation->incoming.reserve(static_cast<size_t>(size()));
    return operation;
  }

  std::shared_ptr<Work> start(std::shared_ptr<Operation> operation) {
    engine_->start(operation);
    return std::make_shared<SharedMemoryWork>(engine_, std::move(operation), timeout_);
  }

  /// Each rank starts with its right neighbour.
  template <class Do>
  void for_others(const Do& act) const {
    for (int step = 1; step < size(); ++step) act((rank() + step) % size());
  }

  template <class LaneOf>
  std::vector<ReceiveChannel*> channels(const LaneOf& lane_of) const {
    std::vector<ReceiveChannel*> found;
    for_others([&](int peer) { found.push_back(lane_of(peer)); });
    return found;
  }

  static void require_taken(bool is_taken) {
    if (!is_taken) throw std::runtime_error("Invalid scalar type");  // gloo's message
  }

  /// Views of the rows that go to or come from each rank. Empty `counts`: equal chunks.
  std::vector<Tensor> rows_by_rank(const Tensor& rows, const std::vector<int64_t>& counts) const {
    if (!counts.empty()) return rows.split_with_sizes(counts);
    const int64_t count = rows.size(0) / size();
    return rows.split_with_sizes(std::vector<int64_t>(static_cast<size_t>(size()), count));
  }

  std::shared_ptr<Engine> engine_;  // shared with work in flight
  std::chrono::milliseconds timeout_;
};

}  // namespace

std::shared_ptr<dist::Backend> make_shared_memory_backend(Members members,
                                                          std::chrono::milliseconds timeout) {
  return std::make_shared<SharedMemoryBackend>(std::move(members), timeout);
}

}  // namespace titan::cpu
