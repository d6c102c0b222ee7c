// Stored weights in fewer bits and their scales: what shape they stand for, which bytes a rectangle
// needs, and its values. Used wherever weights of others are read.
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
  plain,          ///< numbers as they are
  float8_blocks,  ///< e4m3 times the scale of its block of 128 x 128
  mxfp4,          ///< e2m1, two in a byte, times 2^(scale - 127) of its 32 elements
};

/// Of a part whose source is in the index, by its stored type.
Encoding encoding_of(const TensorPart& part, const TensorIndex& index);

/// The shape that the stored tensor stands for.
std::vector<int64_t> value_shape(const TensorPart& part, const TensorIndex& index);
/// The type of its values, as safetensors names it: the stored one, F32 of float8, BF16 of MXFP4
/// (which holds them exactly).
std::string value_dtype(const TensorPart& part, const TensorIndex& index);

/// What is wrong with how the source is stored, as a line of a report; empty: nothing. Scales that
/// are missing or of another shape, types that are no numbers of weights.
std::string storage_problem(const TensorPart& part, const TensorIndex& index);

/// A rectangle of a stored tensor.
struct StoredBox {
  std::string name;
  nn::Slice box;
};

/// What has to be read for the rectangle `box` of the source's values: of plain ones that
/// rectangle, else whole groups of elements and their scales.
std::vector<StoredBox> boxes_for(const TensorPart& part, Encoding encoding, const nn::Slice& box);

/// The values in `box`, from what boxes_for listed, on the CPU in their stored types: of plain ones
/// the tensor itself, of float8 in float32, of MXFP4 in bfloat16.
///
/// Throws a data Error for a scale of MXFP4 that stands for no number.
at::Tensor decoded(const TensorPart& part, Encoding encoding, const nn::Slice& box,
                   const std::vector<at::Tensor>& stored);

}  // namespace titan::core
