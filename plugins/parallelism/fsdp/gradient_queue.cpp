#include "gradient_queue.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>

#include <titan/memory_use.h>

namespace titan::fsdp {
namespace {

/// Removes from the member and returns its gradient of all microbatches since the last reduction;
/// undefined if there is none.
at::Tensor take_gradient(Member& member) {
  at::Tensor gradient = std::exchange(member.leaf.mutable_grad(), at::Tensor());
  if (!member.accumulated.defined()) return gradient;
  at::Tensor sum = std::exchange(member.accumulated, at::Tensor());
  return gradient.defined() ? sum.add_(gradient) : sum;
}

/// On a GPU LibTorch's copy between dtypes reaches less than half of the memory's bandwidth. Its
/// foreach copy, with one pair, gives the same numbers faster.
void copy_dense(const at::Tensor& to, const at::Tensor& from) {
  if (to.is_cuda() && to.scalar_type() != from.scalar_type() && to.is_contiguous() &&
      from.is_contiguous())
    at::_foreach_copy_({to}, {from});
  else
    to.copy_(from);
}

/// Splits `gradient` (contiguous; undefined = zeros) over the rows of `slots`, in their dtype, and
/// fills the rest with zeros.
void copy_to_slots(const at::Tensor& gradient, const at::Tensor& slots) {
  const int64_t num_slots = slots.size(0), slot_elements = slots.size(1);
  const int64_t num_elements = gradient.defined() ? gradient.numel() : 0;
  const int64_t num_full = num_elements / slot_elements;
  const int64_t rest = num_elements - num_full * slot_elements;
  if (num_full > 0)
    copy_dense(slots.narrow(0, 0, num_full), gradient.reshape({-1})
                                                 .narrow(0, 0, num_full * slot_elements)
                                                 .view({num_full, slot_elements}));
  if (num_full == num_slots) return;
  slots.narrow(0, num_full, num_slots - num_full).zero_();
  if (rest > 0)
    slots.select(0, num_full)
        .narrow(0, 0, rest)
        .copy_(gradient.reshape({-1}).narrow(0, num_elements - rest, rest));
}

void complete_gradients(const Unit& unit) {
  const MemoryUseScope use(MemoryUse::temporary);  // callbacks may allocate temporary memory
  for (const Member& member : unit.members)
    if (!member.is_frozen()) member.parameter->complete_gradient();
}

}  // namespace

void GradientQueue::add(Unit& unit, bool completes_step) {
  at::NoGradGuard no_grad;
  end_scatter();
  const MemoryUseScope use(MemoryUse::communication);
  const at::Tensor packed = pack(unit);  // (ranks, slot_elements)
  InFlight flight{.unit = &unit, .completes_step = completes_step};
  if (unit.shards.size() == 1 || unit.slot_elements == 0) {
    flight.sums = packed.view({-1});
  } else {
    const bool becomes_gradient = settings_.reduce_dtype == settings_.stored_dtype;
    const MemoryUseScope sums_use(becomes_gradient ? MemoryUse::gradients
                                                   : MemoryUse::communication);
    flight.sums = at::empty({unit.slot_elements}, packed.options());
    flight.pending = unit.shards.reduce_scatter(flight.sums, packed.view({-1}), dist::Reduce::sum);
  }
  scattered_ = std::move(flight);
}

at::Tensor GradientQueue::pack(Unit& unit) const {
  const at::Tensor packed =
      at::empty({unit.shards.size(), unit.slot_elements},
                at::TensorOptions().dtype(settings_.reduce_dtype).device(settings_.device));
  for (Member& member : unit.members) {
    if (member.chunk_elements == 0 || member.is_frozen()) continue;
    const at::Tensor gradient = take_gradient(member);
    const at::Tensor slots = packed.narrow(1, member.gradient_offset, member.chunk_elements);
    if (member.outer > 1 && gradient.defined()) {
      const at::Tensor chunks = member.by_rank(gradient.contiguous());
      slots.view(chunks.sizes()).copy_(chunks);
    } else {
      copy_to_slots(gradient, slots);
    }
  }
  return packed;
}

void GradientQueue::end_scatter() {
  if (!scattered_) return;
  end_replication();
  InFlight flight = *std::exchange(scattered_, std::nullopt);
  flight.pending.wait();
  Unit& unit = *flight.unit;
  if (unit.replicas.size() == 1) {
    deliver(flight);
    return;
  }
  if (unit.unreplicated.defined()) flight.sums.add_(std::exchange(unit.unreplicated, at::Tensor()));
  if (!flight.completes_step) {
    unit.unreplicated = flight.sums;
    return;
  }
  flight.pending = unit.replicas.all_reduce(flight.sums, dist::Reduce::sum);
  replicated_ = std::move(flight);
}

void GradientQueue::end_replication() {
  if (!replicated_) return;
  InFlight flight = *std::exchange(replicated_, std::nullopt);
  flight.pending.wait();
  deliver(flight);
}

void GradientQueue::deliver(InFlight& flight) {
  const MemoryUseScope use(MemoryUse::gradients);
  at::Tensor stored = std::exchange(flight.sums, at::Tensor()).to(settings_.stored_dtype);
  if (settings_.is_offloaded()) {
    const bool is_pinned = !settings_.device.is_cpu();  // else the copy would block this thread
    at::Tensor host =
        at::empty(stored.sizes(), stored.options().device(c10::kCPU).pinned_memory(is_pinned));
    host.copy_(stored, /*non_blocking=*/true);
    stored = std::move(host);
  }
  bool is_here = !settings_.is_offloaded();
  for (const Member& member : flight.unit->members) {
    if (member.is_frozen()) continue;
    const at::Tensor shard = member.parameter->shard();
    const at::Tensor gradient =
        stored.narrow(0, member.gradient_offset, member.own_elements).view(shard.sizes());
    at::Tensor& total = shard.mutable_grad();
    if (!total.defined()) {
      total = gradient;
      continue;
    }
    if (!std::exchange(is_here, true)) settings_.runtime->synchronize();
    total.add_(gradient);
  }
  if (!flight.completes_step) return;
  if (settings_.is_offloaded())
    offloaded_.push_back(flight.unit);
  else
    complete_gradients(*flight.unit);
}

void GradientQueue::abandon() {
  for (std::optional<InFlight>* flight : {&scattered_, &replicated_})
    if (*flight) (*flight)->pending.wait();
  scattered_.reset(), replicated_.reset(), offloaded_.clear();
}

void GradientQueue::flush() {
  at::NoGradGuard no_grad;
  end_scatter();
  end_replication();
}

void GradientQueue::synchronize() {
  if (!settings_.is_offloaded()) return;
  settings_.runtime->synchronize();
  for (const Unit* unit : std::exchange(offloaded_, {})) complete_gradients(*unit);
}

}  // namespace titan::fsdp
