// Parts of which a tensor is assembled: maps elements between two tensors and copies them. Used
// where weights are exchanged under the rules of a model (rule_layout.h).
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

/// A dimension of a part, in both tensors.
struct PartDim {
  int64_t size = 0;
  Progression target, source;
};

/// Some elements of a target tensor and their places in a source tensor.
struct TensorPart {
  std::string source;
  std::string scales;                                   ///< HfExchange::NameRule::scales
  std::vector<PartDim> dims;                            ///< in the order of the model's tensor
  std::vector<Progression> target_fixed, source_fixed;  ///< dimensions with a single index
  RowOrder order = RowOrder::as_stored;                 ///< of dims[0], from source to target
  int64_t num_heads = 0;
};

/// The parts of one tensor; they cover it without overlap.
using TensorParts = std::vector<TensorPart>;

/// The elements of a part in a rectangle of the target, and the rectangle of the source that holds
/// them.
struct PartOverlap {
  std::vector<int64_t> first, last;  ///< of each of the part's dims
  /// As first and last, but reordered rows are extended to whole heads.
  std::vector<int64_t> source_first, source_last;
  nn::Slice source;
};

/// The overlap of the part with `target`, if any.
std::optional<PartOverlap> overlap(const TensorPart& part, const nn::Slice& target);

/// Copies the overlap. `source` begins at `source_offsets` and holds at least overlap.source;
/// `target` begins at `target_offsets`. Dtypes are converted as by at::Tensor::copy_.
void copy_part(const TensorPart& part, const PartOverlap& overlap, const at::Tensor& source,
               const std::vector<int64_t>& source_offsets, const at::Tensor& target,
               const std::vector<int64_t>& target_offsets);

/// Whether the overlap is all of overlap.source, in the same order. Then `target_as_source` returns
/// the view of the target with the shape of overlap.source.
bool is_rectangle(const TensorPart& part);
at::Tensor target_as_source(const TensorPart& part, const PartOverlap& overlap,
                            const at::Tensor& target, const std::vector<int64_t>& target_offsets);

/// Whether the part covers a whole target and a whole source of these shapes, with the same order
/// of dimensions.
bool is_whole(const TensorPart& part, const std::vector<int64_t>& target,
              const std::vector<int64_t>& source);

}  // namespace titan::core
