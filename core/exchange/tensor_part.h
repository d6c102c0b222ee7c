// A tensor that is put together from parts of others: which elements belong together, and copying
// them. Used wherever weights are exchanged under the rules of a model (rule_layout.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/nn/parameter.h>

#include "core/exchange/tensor_form.h"

namespace titan::core {

/// The elements begin, begin + step, ... of dimension `dim`.
struct Progression {
  int64_t dim = 0;
  int64_t begin = 0;
  int64_t step = 1;
};

/// A dimension that a part has in both tensors.
struct PartDim {
  int64_t size = 0;
  Progression target, source;
};

/// Some elements of a target tensor and where a source tensor holds them.
struct TensorPart {
  std::string source;
  std::string scales;         ///< HfExchange::NameRule::scales
  std::vector<PartDim> dims;  ///< in the order in which the model has them
  std::vector<Progression> target_fixed, source_fixed;  ///< dimensions of which it has one element
  RowOrder order = RowOrder::as_stored;                 ///< of dims[0], from source to target
  int64_t num_heads = 0;
};

/// The parts of one tensor; they cover it without overlap.
using TensorParts = std::vector<TensorPart>;

/// What of a part lies in a rectangle of the target, and the rectangle of the source that holds it.
struct PartOverlap {
  std::vector<int64_t> first, last;  ///< of each of the part's dims
  /// As first and last, with rows that are in another order up to whole heads.
  std::vector<int64_t> source_first, source_last;
  nn::Slice source;
};

/// Nothing when no element of the part lies in `target`.
std::optional<PartOverlap> overlap(const TensorPart& part, const nn::Slice& target);

/// Copies what overlaps: `source` holds at least overlap.source, from `source_offsets` on; `target`
/// what `target_offsets` says. Types are converted as at::Tensor::copy_ does.
void copy_part(const TensorPart& part, const PartOverlap& overlap, const at::Tensor& source,
               const std::vector<int64_t>& source_offsets, const at::Tensor& target,
               const std::vector<int64_t>& target_offsets);

/// Whether overlap.source, element for element, is what overlaps: then `target_as_source` gives the
/// view of the target whose shape is that of overlap.source.
bool is_rectangle(const TensorPart& part);
at::Tensor target_as_source(const TensorPart& part, const PartOverlap& overlap,
                            const at::Tensor& target, const std::vector<int64_t>& target_offsets);

/// Whether the part is the whole of a target and of a source, which have these shapes, in the same
/// order of dimensions.
bool is_whole(const TensorPart& part, const std::vector<int64_t>& target,
              const std::vector<int64_t>& source);

}  // namespace titan::core
