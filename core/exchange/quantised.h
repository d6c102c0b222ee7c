// Decodes quantised weights and their scales: the shape of the values, the bytes that a rectangle
// needs, and its values. Used where weights of other programs are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/nn/init.h>

#include "core/exchange/tensor_part.h"

namespace titan::core {

enum class Encoding {
  plain,          ///< not quantised
  float8_blocks,  ///< e4m3 times the scale of its block of 128 x 128
  mxfp4,          ///< e2m1, two per byte, times 2^(scale - 127) of its group of 32
};

/// The encoding of a part whose source is in the index, by its stored dtype.
Encoding encoding_of(const TensorPart& part, const TensorIndex& index);

/// The shape of the decoded values.
std::vector<int64_t> value_shape(const TensorPart& part, const TensorIndex& index);
/// The dtype of the decoded values, by its name in safetensors: the stored one, F32 for float8,
/// BF16 for MXFP4 (which holds them exactly).
std::string value_dtype(const TensorPart& part, const TensorIndex& index);

/// A line for a report if the source cannot be decoded: its scales are missing or of another shape,
/// or its dtype is unsupported. Empty: no problem.
std::string storage_problem(const TensorPart& part, const TensorIndex& index);

/// A rectangle of a stored tensor.
struct StoredBox {
  std::string name;
  nn::Slice box;
};

/// The stored rectangles to read for the rectangle `box` of the source's values: that rectangle for
/// plain values, else whole groups of elements and their scales.
std::vector<StoredBox> boxes_for(const TensorPart& part, Encoding encoding, const nn::Slice& box);

/// The values in `box`. `stored`: the rectangles of boxes_for, on the CPU in their stored dtypes.
/// Returns plain values unchanged, float8 as float32, MXFP4 as bfloat16.
///
/// Throws a data Error for a NaN scale of MXFP4.
at::Tensor decoded(const TensorPart& part, Encoding encoding, const nn::Slice& box,
                   const std::vector<at::Tensor>& stored);

}  // namespace titan::core
