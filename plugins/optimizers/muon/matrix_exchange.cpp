#include "matrix_exchange.h"

#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <titan/dist/collectives.h>
#include <titan/error.h>
#include <titan/memory_use.h>

namespace titan::muon {

MatrixExchange::MatrixExchange(const nn::Parameter& example, const dist::Mesh* mesh) {
  const auto rows = static_cast<int64_t>(example.global_shape().size()) - 2;  // their dimension
  for (nn::Cut& cut : nn::cuts_of(example, mesh)) {
    cut.dim -= rows;  // within a matrix; negative: along the stack
    if (cut.group.size() > 1 && cut.dim >= 0) cuts_.push_back(std::move(cut));
  }
}

size_t MatrixExchange::batch_size() const {
  return cuts_.empty() ? 1 : static_cast<size_t>(cuts_.back().group.size());
}

std::vector<at::Tensor> MatrixExchange::transform(const std::vector<at::Tensor>& slices,
                                                  const Transform& transform) const {
  TITAN_ASSERT(!slices.empty() && slices.size() <= batch_size(), slices.size(), " matrices");
  if (cuts_.empty()) return {transform(slices.front().contiguous())};
  const at::Tensor mine = to_owners(slices);
  const bool owns_one = static_cast<size_t>(cuts_.back().group.rank()) < slices.size();
  return from_owners(owns_one ? gather(mine, transform) : at::Tensor(), slices);
}

/// Gathers over all groups but the last, transforms, and takes this rank's slice of the result.
at::Tensor MatrixExchange::gather(at::Tensor slice, const Transform& transform) const {
  const auto earlier = cuts_.end() - 1;
  for (auto cut = earlier; cut != cuts_.begin();) {
    --cut;
    slice = dist::all_gather_replicated(slice.contiguous(), cut->dim, cut->group, cut->chunk.full);
  }
  at::Tensor result = transform(slice.contiguous());
  for (auto cut = cuts_.begin(); cut != earlier; ++cut)
    result = result.narrow(cut->dim, cut->chunk.begin, cut->chunk.size);
  return result;
}

/// Sends slice i to rank i of the last group. Returns this rank's matrix, gathered over the last
/// group; on ranks that own no matrix the contents are meaningless.
at::Tensor MatrixExchange::to_owners(const std::vector<at::Tensor>& slices) const {
  const MemoryUseScope use(MemoryUse::communication);
  const nn::Cut& cut = cuts_.back();
  const int64_t num_ranks = cut.group.size(), width = slices.front().size(1 - cut.dim);
  const at::Tensor in = at::zeros({num_ranks, cut.chunk.largest, width}, slices.front().options());
  for (size_t i = 0; i < slices.size(); ++i)
    in.select(0, static_cast<int64_t>(i))
        .narrow(0, 0, cut.chunk.size)
        .copy_(slices[i].transpose(0, cut.dim));
  const at::Tensor out = at::empty_like(in);
  cut.group.all_to_all(out, in).wait();
  return out.view({num_ranks * cut.chunk.largest, width})
      .narrow(0, 0, cut.chunk.full)
      .transpose(0, cut.dim);
}

/// The reverse exchange. `result`: undefined on ranks that own no matrix. Returns slices in number
/// and shape as `like`.
std::vector<at::Tensor> MatrixExchange::from_owners(const at::Tensor& result,
                                                    const std::vector<at::Tensor>& like) const {
  const MemoryUseScope use(MemoryUse::communication);
  const nn::Cut& cut = cuts_.back();
  const int64_t num_ranks = cut.group.size(), width = like.front().size(1 - cut.dim);
  const at::Tensor in = at::zeros({num_ranks, cut.chunk.largest, width}, like.front().options());
  if (result.defined())
    in.view({num_ranks * cut.chunk.largest, width})
        .narrow(0, 0, cut.chunk.full)
        .copy_(result.transpose(0, cut.dim));
  const at::Tensor out = at::empty_like(in);
  cut.group.all_to_all(out, in).wait();
  std::vector<at::Tensor> slices;
  for (size_t i = 0; i < like.size(); ++i)
    slices.push_back(
        out.select(0, static_cast<int64_t>(i)).narrow(0, 0, cut.chunk.size).transpose(0, cut.dim));
  return slices;
}

}  // namespace titan::muon
