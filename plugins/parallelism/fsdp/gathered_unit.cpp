#include "gathered_unit.h"

#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/split_with_sizes_copy.h>

#include <titan/memory_use.h>

#include "leaf_storage.h"

namespace titan::fsdp {

at::Tensor GatheredUnit::empty_bytes(at::IntArrayRef sizes) const {
  return at::empty(sizes, at::TensorOptions().dtype(at::kByte).device(settings_.device));
}

void GatheredUnit::start() {
  if (is_whole_ || buffer_.defined() || unit_.shards.size() == 1 || unit_.slot_bytes == 0) return;
  const MemoryUseScope use(MemoryUse::communication);
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView below;
  buffer_ = empty_bytes({unit_.shards.size(), unit_.slot_bytes});
  const at::Tensor slot = buffer_.select(0, unit_.shards.rank());
  const SideStreamScope copy_stream(copy_stream_);
  copy_in(slot);
  pending_ = unit_.shards.all_gather(buffer_.view({-1}), slot);
}

void GatheredUnit::finish() {
  if (is_whole_) return;
  const MemoryUseScope use(MemoryUse::communication);
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView below;
  if (unit_.shards.size() == 1) {
    cast_alone();
  } else if (unit_.slot_bytes > 0) {
    start();
    pending_.wait();
    copy_out();
    buffer_.reset();
  }
  is_whole_ = true;
}

void GatheredUnit::release() {
  pending_.wait();
  pending_ = {};
  buffer_.reset();
  for (const Member& member : unit_.members) drop_memory(member.leaf);
  is_whole_ = false;
}

void GatheredUnit::copy_in(const at::Tensor& slot) const {
  std::vector<at::Tensor> places, shards;
  for (const Member& member : unit_.members) {
    if (member.own_elements == 0) continue;
    nn::Parameter& parameter = *member.parameter;
    const at::Tensor shard = parameter.shard().detach();
    const int64_t bytes =
        member.own_elements * static_cast<int64_t>(c10::elementSize(member.wire_dtype));
    places.push_back(
        slot.narrow(0, member.wire_offset, bytes).view(member.wire_dtype).view(shard.sizes()));
    shards.push_back(parameter.gather_transform() ? parameter.gather_transform()->encode(shard)
                                                  : shard);
  }
  if (!places.empty()) at::_foreach_copy_(places, shards, /*non_blocking=*/true);
}

/// Bytes of a whole parameter in order, from the ranks' chunks, each of which has a part of every
/// matrix.
at::Tensor GatheredUnit::in_order(const Member& member, const at::Tensor& wire) const {
  const at::Tensor whole = empty_bytes({wire.numel()});
  const at::Tensor elements = whole.view(member.wire_dtype);
  const at::Tensor chunks = member.by_rank(elements);  // (ranks, outer, elements of one)
  chunks.copy_(wire.view(member.wire_dtype).view(chunks.sizes()));
  return whole;
}

void GatheredUnit::copy_out() const {
  const int64_t num_ranks = unit_.shards.size();
  std::vector<at::Tensor> wires;   // one per member, (ranks, wire_bytes)
  std::vector<at::Tensor> pieces;  // the wires, and placeholders for gaps between chunks
  std::vector<int64_t> sizes;
  int64_t end = 0;
  const auto take = [&](int64_t bytes) {
    pieces.push_back(empty_bytes({num_ranks, bytes}));
    sizes.push_back(bytes);
    end += bytes;
  };
  for (const Member& member : unit_.members) {
    if (member.wire_offset > end) take(member.wire_offset - end);
    take(member.wire_bytes);
    wires.push_back(pieces.back());
  }
  if (unit_.slot_bytes > end) take(unit_.slot_bytes - end);
  at::split_with_sizes_copy_out(pieces, buffer_, sizes, /*dim=*/1);

  for (size_t i = 0; i < wires.size(); ++i) {
    const Member& member = unit_.members[i];
    nn::GatherTransform* transform = member.parameter->gather_transform();
    const at::Tensor gathered = member.outer > 1 ? in_order(member, wires[i]) : wires[i];
    if (!transform) {
      give_memory(member.leaf, gathered);
      continue;
    }
    const at::Tensor wire = gathered.view({-1}).view(member.wire_dtype);
    give_memory(member.leaf, empty_bytes({static_cast<int64_t>(member.leaf.nbytes())}));
    // not the leaf itself: a decoder must not change the version of a tensor saved by autograd
    transform->decode(wire.narrow(0, 0, member.leaf.numel()).view(member.leaf.sizes()),
                      member.leaf.variable_data());
  }
}

void GatheredUnit::cast_alone() const {
  for (const Member& member : unit_.members) {
    const at::Tensor value =
        at::empty(member.leaf.sizes(), member.leaf.options().requires_grad(false));
    value.copy_(member.parameter->shard().detach(), /*non_blocking=*/true);
    give_memory(member.leaf, value);
  }
}

}  // namespace titan::fsdp
