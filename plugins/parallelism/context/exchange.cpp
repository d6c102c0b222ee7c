#include "exchange.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "online_attention.h"

namespace titan::context_parallel {
namespace {

using at::Tensor;
using dist::Pending;

at::TensorOptions sum_options(const Tensor& packed) {
  return packed.options().dtype(sum_type(packed));
}

/// The shape of `packed` for each of `size` ranks.
std::vector<int64_t> for_each_rank(int64_t size, const Tensor& packed) {
  std::vector<int64_t> shape = packed.sizes().vec();
  shape.insert(shape.begin(), size);
  return shape;
}

class AllGather final : public Exchange {
 public:
  explicit AllGather(dist::Group group) : group_(std::move(group)) {}

  void forward(const Tensor& own, const Visit& visit) const override { gather(own, visit); }

  Tensor backward(const Tensor& own, const BackwardVisit& visit) const override {
    const Tensor all = at::zeros(for_each_rank(group_.size(), own), sum_options(own));
    gather(own, [&](int64_t source, const Tensor& packed) { visit(source, packed)(all[source]); });
    const Tensor sum = at::empty(own.sizes(), all.options());
    group_.reduce_scatter(sum, all.flatten(0, 1), dist::Reduce::sum).wait();
    return sum;
  }

 private:
  void gather(const Tensor& own, const Visit& visit) const {
    const int64_t rank = group_.rank(), size = group_.size();
    const Tensor all = at::empty(for_each_rank(size, own), own.options());
    Pending gathered = group_.all_gather(all.flatten(0, 1), own);
    visit(rank, own);
    gathered.wait();
    for (int64_t step = 1; step < size; ++step) {
      const int64_t source = (rank - step + size) % size;
      visit(source, all[source]);
    }
  }

  dist::Group group_;
};

class Ring final : public Exchange {
 public:
  explicit Ring(dist::Group group) : group_(std::move(group)) {}

  void forward(const Tensor& own, const Visit& visit) const override {
    Tensor held = own;
    for (int64_t step = 0; step < group_.size(); ++step) {
      Shift next = step + 1 < group_.size() ? start(held, kKeysAndValues) : Shift{};
      visit(source_at(step), held);
      held = next.finish();
    }
  }

  Tensor backward(const Tensor& own, const BackwardVisit& visit) const override {
    Tensor held = own;
    Shift gradients{.received = at::zeros(own.sizes(), sum_options(own))};
    for (int64_t step = 0; step < group_.size(); ++step) {
      Shift next = step + 1 < group_.size() ? start(held, kKeysAndValues) : Shift{};
      const AddShare add_share = visit(source_at(step), held);
      const Tensor sum = gradients.finish();  // of `held`: gradients arrive one step later
      add_share(sum);
      gradients = start(sum, kGradients);
      held = next.finish();
    }
    return gradients.finish();
  }

 private:
  enum Tag { kKeysAndValues, kGradients };

  /// One step to the next rank, in flight.
  struct Shift {
    Tensor sent, received;
    Pending sending, receiving;

    Tensor finish() {
      receiving.wait();
      sending.wait();
      sent = Tensor();
      return std::move(received);
    }
  };

  int64_t source_at(int64_t step) const {
    return (group_.rank() - step + group_.size()) % group_.size();
  }

  Shift start(const Tensor& tensor, Tag tag) const {
    const int rank = group_.rank(), size = group_.size();
    if (size == 1) return {.received = tensor};
    Shift shift{.sent = tensor, .received = at::empty_like(tensor)};
    const auto send = [&] { shift.sending = group_.send(tensor, (rank + 1) % size, tag); };
    // neighbours alternate: a transport may process one operation after the other
    if (rank % 2 == 0) send();
    shift.receiving = group_.receive(shift.received, (rank - 1 + size) % size, tag);
    if (rank % 2 == 1) send();
    return shift;
  }

  dist::Group group_;
};

}  // namespace

Tensor pack(const Tensor& k, const Tensor& v) {
  const int64_t width = k.size(3);
  const Tensor packed =
      at::empty({k.size(0), k.size(2), k.size(1), width + v.size(3)}, k.options());
  keys_of(packed, width).copy_(k);
  values_of(packed, width).copy_(v);
  return packed;
}

Tensor keys_of(const Tensor& packed, int64_t width) {
  return packed.narrow(3, 0, width).transpose(1, 2);
}
Tensor values_of(const Tensor& packed, int64_t width) {
  return packed.narrow(3, width, packed.size(3) - width).transpose(1, 2);
}

Exchange::~Exchange() = default;

std::unique_ptr<Exchange> make_exchange(RotateMethod method, const dist::Group& group) {
  if (method == RotateMethod::alltoall) return std::make_unique<Ring>(group);
  return std::make_unique<AllGather>(group);
}

}  // namespace titan::context_parallel
