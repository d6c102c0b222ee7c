#include "core/exchange/part_stream.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <titan/error.h>

#include "core/base/dtype.h"
#include "core/exchange/quantised.h"
#include "core/exchange/tensor_copy.h"
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr int64_t kPartBlockBytes = int64_t{32} << 20;
constexpr size_t kMaxOpenSources = 64;

/// The view of `box` within `tensor`, which begins at `offsets`.
at::Tensor narrowed(at::Tensor tensor, const std::vector<int64_t>& offsets, const nn::Slice& box) {
  for (size_t d = 0; d < box.sizes.size(); ++d)
    tensor = tensor.narrow(static_cast<int64_t>(d), box.offsets[d] - offsets[d], box.sizes[d]);
  return tensor;
}

}  // namespace

const File& PartStream::file(int number) {
  if (open_.size() >= kMaxOpenSources && !open_.contains(number)) open_.clear();
  auto found = open_.find(number);
  if (found == open_.end())
    found =
        open_.emplace(number, File::open_to_read(index_.files[static_cast<size_t>(number)])).first;
  return found->second;
}

/// Reads whole rows of each piece, which are contiguous, and copies the needed parts.
at::Tensor PartStream::read_box(const std::string& name, const nn::Slice& box) {
  const StoredTensor& tensor = index_.tensors.find(name)->second;
  const auto options = at::TensorOptions().dtype(scalar_type(tensor.dtype));
  at::Tensor result = at::empty(box.sizes, options);
  for (const StoredPiece& piece : tensor.pieces) {
    nn::Slice common, rows{.offsets = piece.offsets, .sizes = piece.sizes};
    bool meets = true;
    for (size_t d = 0; d < box.sizes.size(); ++d) {
      const int64_t begin = std::max(box.offsets[d], piece.offsets[d]);
      const int64_t end =
          std::min(box.offsets[d] + box.sizes[d], piece.offsets[d] + piece.sizes[d]);
      meets = meets && begin < end;
      common.offsets.push_back(begin);
      common.sizes.push_back(end - begin);
    }
    if (!meets || piece.bytes == 0) continue;
    int64_t position = piece.position;
    if (!box.sizes.empty()) {
      rows.offsets[0] = common.offsets[0];
      rows.sizes[0] = common.sizes[0];
      position += piece.bytes / piece.sizes[0] * (common.offsets[0] - piece.offsets[0]);
    }
    const at::Tensor read = at::empty(rows.sizes, options);
    file(piece.file)
        .read(position, static_cast<char*>(read.mutable_data_ptr()),
              static_cast<int64_t>(read.nbytes()));
    narrowed(result, box.offsets, common).copy_(narrowed(read, rows.offsets, common));
  }
  return result;
}

void PartStream::check_hash(const std::string& name) {
  const StoredTensor& tensor = index_.tensors.find(name)->second;
  const bool has_hash = std::any_of(tensor.pieces.begin(), tensor.pieces.end(),
                                    [](const StoredPiece& piece) { return !piece.hash.empty(); });
  if (!has_hash || !checked_.insert(name).second) return;
  TensorStream(index_).read(name, {.dtype = tensor.dtype}, [](const char*, int64_t) {});
}

at::Tensor PartStream::values_of(const TensorPart& part, const nn::Slice& box,
                                 const ComputedSource& computed) {
  if (computed && computed_name_ != part.source) {
    computed_values_ = computed(part.source);
    computed_name_ = part.source;
  }
  if (computed && computed_values_.defined())
    return narrowed(computed_values_, std::vector<int64_t>(box.sizes.size()), box);
  const Encoding encoding = encoding_of(part, index_);
  std::vector<at::Tensor> stored;
  for (const StoredBox& needed : boxes_for(part, encoding, box)) {
    check_hash(needed.name);
    stored.push_back(read_box(needed.name, needed.box));
  }
  return decoded(part, encoding, box, stored);
}

void PartStream::read(const std::string& name, const std::vector<int64_t>& shape,
                      const std::string& dtype, const TensorParts& parts,
                      const ComputedSource& computed,
                      const std::function<void(const char*, int64_t)>& take) {
  at::NoGradGuard no_grad;
  computed_name_.clear();
  computed_values_.reset();
  for (const TensorPart& part : parts) {
    const std::string from = value_dtype(part, index_);
    TITAN_CHECK(dtype_stored_as(from) && dtype_stored_as(dtype), data, "tensor ", part.source,
                " is of type ", from, " and cannot become ", dtype,
                "; only F64, F32, BF16 and F16 are converted");
  }
  const auto options = at::TensorOptions().dtype(scalar_type(dtype));
  int64_t row_bytes = options.dtype().itemsize();
  for (size_t d = 1; d < shape.size(); ++d) row_bytes *= shape[d];
  const int64_t num_rows = shape.empty() ? 1 : shape[0];
  if (row_bytes == 0) return;
  const int64_t step = std::max<int64_t>(1, kPartBlockBytes / row_bytes);
  for (int64_t first = 0; first < num_rows; first += step) {
    nn::Slice box = {.offsets = std::vector<int64_t>(shape.size()), .sizes = shape};
    if (!shape.empty()) {
      box.offsets[0] = first;
      box.sizes[0] = std::min(step, num_rows - first);
    }
    const at::Tensor block = at::empty(box.sizes, options);
    for (const TensorPart& part : parts) {
      const auto common = overlap(part, box);
      if (!common) continue;
      const at::Tensor values = in_dtype(values_of(part, common->source, computed), dtype, name);
      copy_part(part, *common, values, common->source.offsets, block, box.offsets);
    }
    take(static_cast<const char*>(block.const_data_ptr()), static_cast<int64_t>(block.nbytes()));
  }
}

}  // namespace titan::core
