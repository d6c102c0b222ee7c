#include "exchange.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace titan::replay {
namespace {

int64_t next_of(const dist::Group& dp) {
  return (dp.rank() + 1) % dp.size();
}

/// Loss, outputs and gradients in order.
std::vector<int64_t> hashes_of(const RunBits& bits) {
  std::vector<int64_t> hashes{static_cast<int64_t>(bits.loss),
                              static_cast<int64_t>(bits.auxiliary)};
  for (const auto* seen : {&bits.outputs, &bits.gradients})
    for (const RunBits::Seen& one : *seen) hashes.push_back(one.hash);
  return hashes;
}

}  // namespace

/// As bytes, because not every transport has every dtype.
at::Tensor of_next_rank(const at::Tensor& tensor, const dist::Group& dp, c10::Device device) {
  if (!tensor.defined()) return tensor;
  const at::Tensor own = tensor.to(device).contiguous().view({-1}).view(at::kByte);
  const at::Tensor all = at::empty({dp.size() * own.numel()}, own.options());
  dp.all_gather(all, own).wait();
  return all.narrow(0, next_of(dp) * own.numel(), own.numel())
      .clone()
      .view(tensor.scalar_type())
      .view(tensor.sizes())
      .to(tensor.device());
}

StepBatches of_next_rank(const StepBatches& own, const dist::Group& dp, c10::Device device) {
  StepBatches next = own;
  for (Batch& batch : next.microbatches) {
    for (at::Tensor* tensor :
         {&batch.tokens, &batch.labels, &batch.positions, &batch.documents, &batch.is_padding})
      *tensor = of_next_rank(*tensor, dp, device);
    const at::Tensor numbers = of_next_rank(
        at::tensor({batch.places.first_row, batch.num_positions}, at::kLong), dp, device);
    batch.places.first_row = numbers[0].item<int64_t>();
    batch.num_positions = numbers[1].item<int64_t>();
  }
  next.num_local_valid_tokens =
      of_next_rank(at::tensor({own.num_local_valid_tokens}, at::kLong), dp, device).item<int64_t>();
  return next;
}

bool can_exchange(const StepBatches& own) {
  return std::none_of(own.microbatches.begin(), own.microbatches.end(),
                      [](const Batch& batch) { return batch.reference.defined(); });
}

Difference difference_to_next(const RunBits& own, const RunBits& other, const dist::Group& dp,
                              c10::Device device) {
  const at::Tensor theirs = of_next_rank(at::tensor(hashes_of(own), at::kLong), dp, device);
  const int64_t* hash = theirs.const_data_ptr<int64_t>();
  RunBits next = other;
  next.loss = static_cast<uint64_t>(*hash++);
  next.auxiliary = static_cast<uint64_t>(*hash++);
  for (auto* seen : {&next.outputs, &next.gradients})
    for (RunBits::Seen& one : *seen) one.hash = *hash++;
  return difference_of(next, other);
}

std::vector<Finding> blame(const std::vector<Exchanged>& of_ranks) {
  std::vector<int64_t> num_pairs(of_ranks.size(), 0), num_different(of_ranks.size(), 0);
  for (size_t rank = 0; rank < of_ranks.size(); ++rank)
    for (const size_t one : {rank, static_cast<size_t>(of_ranks[rank].next)}) {
      ++num_pairs[one];
      num_different[one] += of_ranks[rank].difference.is_any();
    }
  const auto is_pair_of_two = [&](size_t rank) {
    return of_ranks[static_cast<size_t>(of_ranks[rank].next)].next == static_cast<int64_t>(rank);
  };
  const auto is_odd = [&](size_t rank) {
    return !is_pair_of_two(rank) && num_different[rank] == num_pairs[rank];
  };
  std::vector<Finding> findings(of_ranks.size());
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const Difference& difference = of_ranks[rank].difference;
    if (!difference.is_any()) continue;
    const auto next = static_cast<size_t>(of_ranks[rank].next);
    const bool is_known = is_odd(rank) || is_odd(next);
    for (const size_t one : {rank, next})
      if (!is_known || is_odd(one))
        findings[one] = {.odd = is_known ? Odd::of_neighbours : Odd::of_pair,
                         .output = difference.output,
                         .gradient = difference.gradient,
                         .is_of_loss = difference.is_of_loss};
  }
  return findings;
}

}  // namespace titan::replay
