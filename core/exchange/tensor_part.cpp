#include "core/exchange/tensor_part.h"

#include <algorithm>

#include <titan/error.h>

namespace titan::core {
namespace {

/// The range of indices i whose offset is in [begin, end).
std::pair<int64_t, int64_t> places_in(const Progression& run, int64_t size, int64_t begin,
                                      int64_t end) {
  const auto at_or_after = [&](int64_t position) {
    return position <= run.begin ? 0 : (position - run.begin + run.step - 1) / run.step;
  };
  return {std::min(size, at_or_after(begin)), std::min(size, at_or_after(end))};
}

/// The view of indices [first, last) of the part's dims, in their order, in `tensor`, which begins
/// at `offsets`.
at::Tensor view_of(at::Tensor tensor, const std::vector<int64_t>& offsets,
                   const std::vector<PartDim>& dims, Progression PartDim::*side,
                   const std::vector<Progression>& fixed, const std::vector<int64_t>& first,
                   const std::vector<int64_t>& last) {
  std::vector<int64_t> order;
  for (size_t k = 0; k < dims.size(); ++k) {
    const Progression& run = dims[k].*side;
    const int64_t begin = run.begin + first[k] * run.step - offsets[static_cast<size_t>(run.dim)];
    const int64_t end = begin + (last[k] - first[k] - 1) * run.step + 1;
    tensor = tensor.slice(run.dim, begin, end, run.step);
    order.push_back(run.dim);
  }
  for (const Progression& run : fixed) {
    tensor = tensor.narrow(run.dim, run.begin - offsets[static_cast<size_t>(run.dim)], 1);
    order.push_back(run.dim);
  }
  tensor = tensor.permute(order);
  for (size_t i = 0; i < fixed.size(); ++i) tensor = tensor.squeeze(-1);
  return tensor;
}

}  // namespace

std::optional<PartOverlap> overlap(const TensorPart& part, const nn::Slice& target) {
  PartOverlap found;
  const auto end_of = [&](int64_t dim) {
    return target.offsets[static_cast<size_t>(dim)] + target.sizes[static_cast<size_t>(dim)];
  };
  for (const Progression& run : part.target_fixed)
    if (run.begin < target.offsets[static_cast<size_t>(run.dim)] || run.begin >= end_of(run.dim))
      return std::nullopt;
  for (const PartDim& dim : part.dims) {
    const auto [first, last] =
        places_in(dim.target, dim.size, target.offsets[static_cast<size_t>(dim.target.dim)],
                  end_of(dim.target.dim));
    if (first >= last) return std::nullopt;
    found.first.push_back(first);
    found.last.push_back(last);
  }
  found.source_first = found.first;
  found.source_last = found.last;
  if (part.order != RowOrder::as_stored) {
    const int64_t head = part.dims[0].size / part.num_heads;
    found.source_first[0] = found.first[0] / head * head;
    found.source_last[0] = (found.last[0] + head - 1) / head * head;
  }
  const size_t rank = part.dims.size() + part.source_fixed.size();
  found.source.offsets.resize(rank);
  found.source.sizes.resize(rank);
  for (size_t k = 0; k < part.dims.size(); ++k) {
    const Progression& run = part.dims[k].source;
    const auto dim = static_cast<size_t>(run.dim);
    found.source.offsets[dim] = run.begin + found.source_first[k] * run.step;
    found.source.sizes[dim] = (found.source_last[k] - found.source_first[k] - 1) * run.step + 1;
  }
  for (const Progression& run : part.source_fixed) {
    found.source.offsets[static_cast<size_t>(run.dim)] = run.begin;
    found.source.sizes[static_cast<size_t>(run.dim)] = 1;
  }
  return found;
}

void copy_part(const TensorPart& part, const PartOverlap& overlap, const at::Tensor& source,
               const std::vector<int64_t>& source_offsets, const at::Tensor& target,
               const std::vector<int64_t>& target_offsets) {
  at::Tensor values = view_of(source, source_offsets, part.dims, &PartDim::source,
                              part.source_fixed, overlap.source_first, overlap.source_last);
  if (part.order != RowOrder::as_stored) {
    const int64_t head = part.dims[0].size / part.num_heads;
    const TensorForm form = {
        .dtype = "",
        .order = part.order,
        .num_heads = (overlap.source_last[0] - overlap.source_first[0]) / head};
    values = in_row_order(values, form, part.source)
                 .narrow(0, overlap.first[0] - overlap.source_first[0],
                         overlap.last[0] - overlap.first[0]);
  }
  view_of(target, target_offsets, part.dims, &PartDim::target, part.target_fixed, overlap.first,
          overlap.last)
      .copy_(values);
}

bool is_rectangle(const TensorPart& part) {
  return part.order == RowOrder::as_stored &&
         std::all_of(part.dims.begin(), part.dims.end(),
                     [](const PartDim& dim) { return dim.source.step == 1; });
}

at::Tensor target_as_source(const TensorPart& part, const PartOverlap& overlap,
                            const at::Tensor& target, const std::vector<int64_t>& target_offsets) {
  TITAN_ASSERT(is_rectangle(part), part.source);
  at::Tensor view = view_of(target, target_offsets, part.dims, &PartDim::target, part.target_fixed,
                            overlap.first, overlap.last);
  std::vector<int64_t> order(overlap.source.sizes.size());
  for (size_t k = 0; k < part.dims.size(); ++k)
    order[static_cast<size_t>(part.dims[k].source.dim)] = static_cast<int64_t>(k);
  for (const Progression& run : part.source_fixed) {
    order[static_cast<size_t>(run.dim)] = view.dim();
    view = view.unsqueeze(-1);
  }
  return view.permute(order);
}

bool is_whole(const TensorPart& part, const std::vector<int64_t>& target,
              const std::vector<int64_t>& source) {
  if (!part.target_fixed.empty() || !part.source_fixed.empty() || target != source) return false;
  for (size_t k = 0; k < part.dims.size(); ++k) {
    const PartDim& dim = part.dims[k];
    const auto is_own = [&](const Progression& run) {
      return run.dim == static_cast<int64_t>(k) && run.begin == 0 && run.step == 1;
    };
    if (!is_own(dim.target) || !is_own(dim.source) || dim.size != target[k]) return false;
  }
  return true;
}

}  // namespace titan::core
