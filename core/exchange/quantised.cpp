#include "core/exchange/quantised.h"

#include <algorithm>

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ldexp.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <titan/error.h>

#include "core/base/dtype.h"
#include "core/exchange/shape_text.h"

namespace titan::core {
namespace {

constexpr int64_t kBlock = 128;  // of float8: edge length of a block in its two dimensions
constexpr int64_t kGroup = 32;   // of MXFP4: elements per scale
constexpr uint8_t kNoNumber = 255;

const StoredTensor& stored(const std::string& name, const TensorIndex& index) {
  return index.tensors.find(name)->second;
}

int64_t blocks_of(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}

/// The rectangle in units of `block`, rounded outwards, in the last `num_dims` dimensions.
nn::Slice in_blocks(nn::Slice box, size_t num_dims, int64_t block) {
  for (size_t d = box.sizes.size() - num_dims; d < box.sizes.size(); ++d) {
    const int64_t end = blocks_of(box.offsets[d] + box.sizes[d], block);
    box.offsets[d] /= block;
    box.sizes[d] = end - box.offsets[d];
  }
  return box;
}

at::Tensor from_float8(const nn::Slice& box, const at::Tensor& values, const at::Tensor& scales) {
  at::Tensor spread = scales.to(at::kFloat);
  for (size_t d = box.sizes.size() - 2; d < box.sizes.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    spread =
        spread.repeat_interleave(kBlock, dim).narrow(dim, box.offsets[d] % kBlock, box.sizes[d]);
  }
  return values.to(at::kFloat).mul(spread);
}

at::Tensor from_mxfp4(const TensorPart& part, const nn::Slice& box, const at::Tensor& blocks,
                      const at::Tensor& scales) {
  TITAN_CHECK(!scales.eq(kNoNumber).any().item<bool>(), data, "tensor ", part.scales,
              " holds the scale 255, which is NaN");
  static const at::Tensor kValues =
      at::tensor({0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F, -0.0F, -0.5F, -1.0F, -1.5F, -2.0F,
                  -3.0F, -4.0F, -6.0F});
  const at::Tensor low = blocks.bitwise_and(0x0f), high = blocks.bitwise_right_shift(4);
  const at::Tensor halves = at::stack({low, high}, -1).flatten(-2).to(at::kLong);
  const at::Tensor numbers = kValues.index({halves});
  const at::Tensor exponents = scales.to(at::kInt).sub(127).unsqueeze(-1);
  const at::Tensor whole = at::ldexp(numbers, exponents).to(at::kBFloat16).flatten(-2);
  const size_t last = box.sizes.size() - 1;
  return whole.narrow(static_cast<int64_t>(last), box.offsets[last] % kGroup, box.sizes[last]);
}

}  // namespace

Encoding encoding_of(const TensorPart& part, const TensorIndex& index) {
  if (part.scales.empty()) return Encoding::plain;
  const std::string& dtype = stored(part.source, index).dtype;
  return dtype == "F8_E4M3" ? Encoding::float8_blocks
         : dtype == "U8"    ? Encoding::mxfp4
                            : Encoding::plain;
}

std::vector<int64_t> value_shape(const TensorPart& part, const TensorIndex& index) {
  std::vector<int64_t> shape = stored(part.source, index).shape;
  if (encoding_of(part, index) == Encoding::mxfp4 && shape.size() >= 2 &&
      shape.back() == kGroup / 2) {
    shape.pop_back();
    shape.back() *= kGroup;
  }
  return shape;
}

std::string value_dtype(const TensorPart& part, const TensorIndex& index) {
  switch (encoding_of(part, index)) {
    case Encoding::plain:
      return stored(part.source, index).dtype;
    case Encoding::float8_blocks:
      return "F32";
    case Encoding::mxfp4:
      return "BF16";
  }
  return "";
}

std::string storage_problem(const TensorPart& part, const TensorIndex& index) {
  const StoredTensor& source = stored(part.source, index);
  const Encoding encoding = encoding_of(part, index);
  if (encoding == Encoding::plain)
    return dtype_stored_as(source.dtype) ? ""
                                         : part.source + " is of type " + source.dtype +
                                               ", for which the model's rules name no scales";
  const auto scales = index.tensors.find(part.scales);
  if (scales == index.tensors.end())
    return part.source + " is of type " + source.dtype + ", but its scales " + part.scales +
           " are missing";
  std::vector<int64_t> expected = source.shape;
  if (encoding == Encoding::mxfp4) {
    if (expected.size() < 2 || expected.back() != kGroup / 2)
      return part.source + " is " + shape_text(expected) + ", but MXFP4 ends with 16 bytes a group";
    expected.pop_back();
    if (scales->second.dtype != "U8")
      return part.scales + " is of type " + scales->second.dtype +
             ", scales of MXFP4 are of type U8";
  } else {
    if (expected.size() < 2) return part.source + " has no blocks of rows and columns";
    for (size_t d = expected.size() - 2; d < expected.size(); ++d)
      expected[d] = blocks_of(expected[d], kBlock);
    if (!dtype_stored_as(scales->second.dtype))
      return part.scales + " is of type " + scales->second.dtype + ", which scales cannot be";
  }
  if (scales->second.shape == expected) return "";
  return part.scales + " is " + shape_text(scales->second.shape) + ", for " + part.source + " " +
         shape_text(source.shape) + " it should be " + shape_text(expected);
}

std::vector<StoredBox> boxes_for(const TensorPart& part, Encoding encoding, const nn::Slice& box) {
  if (encoding == Encoding::plain) return {{part.source, box}};
  if (encoding == Encoding::float8_blocks)
    return {{part.source, box}, {part.scales, in_blocks(box, 2, kBlock)}};
  const nn::Slice groups = in_blocks(box, 1, kGroup);
  nn::Slice bytes = groups;
  bytes.offsets.push_back(0);
  bytes.sizes.push_back(kGroup / 2);
  return {{part.source, bytes}, {part.scales, groups}};
}

at::Tensor decoded(const TensorPart& part, Encoding encoding, const nn::Slice& box,
                   const std::vector<at::Tensor>& stored) {
  if (encoding == Encoding::plain) return stored[0];
  return encoding == Encoding::float8_blocks ? from_float8(box, stored[0], stored[1])
                                             : from_mxfp4(part, box, stored[0], stored[1]);
}

}  // namespace titan::core
