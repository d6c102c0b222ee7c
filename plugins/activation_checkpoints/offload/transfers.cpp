#include "transfers.h"

#include <bit>
#include <utility>

#include <ATen/ops/empty.h>

namespace titan::offload {

const SideStream& Transfers::stream(std::optional<SideStream>& stream, c10::Device device) {
  if (!stream) stream.emplace(device);
  return *stream;
}

HostPiece Transfers::take_host(int64_t bytes) {
  // few size classes, because the sizes of experts' activations vary from step to step
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
  std::vector<HostPiece>& free = free_[size];
  if (free.empty())
    return {.bytes = at::empty({size}, at::TensorOptions().dtype(at::kByte).pinned_memory(pins_))};
  HostPiece piece = std::move(free.back());
  free.pop_back();
  return piece;
}

void Transfers::give_back(HostPiece piece) {
  free_[piece.bytes.numel()].push_back(std::move(piece));
}

void Transfers::start(const std::shared_ptr<Leaving>& copy, const void* block) {
  if (!copy->is_leaving()) return;
  leaving_.push_back({copy, block});
  while (limit_ > 0 && leaving_bytes_ > limit_ && leaving_.size() > 1) {
    if (const auto oldest = leaving_.front().copy.lock()) oldest->let_go();
    leaving_.pop_front();
  }
}

void Transfers::finish_others(const void* block) {
  std::erase_if(leaving_, [&](const Entry& entry) {
    const auto copy = entry.copy.lock();
    if (!copy || !copy->is_leaving()) return true;
    if (entry.block == block) return false;
    copy->let_go();
    return true;
  });
}

}  // namespace titan::offload
