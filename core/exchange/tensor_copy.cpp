#include "core/exchange/tensor_copy.h"

#include <algorithm>
#include <cstring>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <titan/error.h>

#include "core/base/dtype.h"
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr int64_t kBlockBytes = int64_t{8} << 20;
constexpr size_t kMaxOpenFiles = 64;  // well below the limit of a process

/// Rows along the first dimension; a scalar is one row.
struct Rows {
  int64_t count = 1;
  int64_t bytes = 0;  // of one
};

Rows rows_of(const std::vector<int64_t>& sizes, int64_t element_bytes) {
  Rows rows{.count = sizes.empty() ? 1 : sizes[0], .bytes = element_bytes};
  for (size_t d = 1; d < sizes.size(); ++d) rows.bytes *= sizes[d];
  return rows;
}

int64_t element_bytes(std::string_view name, const std::string& dtype) {
  const int bits = bits_of(dtype);
  TITAN_CHECK(bits > 0 && bits % 8 == 0, data, "tensor ", name, " is of type ", dtype,
              ", which cannot be copied in parts");
  return bits / 8;
}

bool is_convertible(std::string_view dtype) {
  return dtype_stored_as(dtype).has_value();
}

/// Reorders `count` rows, which begin with the first row of a head.
void reorder(const char* in, int64_t count, int64_t row_bytes, int64_t head_rows, RowOrder order,
             char* out) {
  const int64_t half = head_rows / 2;
  for (int64_t row = 0; row < count; ++row) {
    const int64_t head = row / head_rows, within = row % head_rows;
    const int64_t place = order == RowOrder::pairs_to_halves ? within % 2 * half + within / 2
                                                             : within % half * 2 + within / half;
    std::memcpy(out + (head * head_rows + place) * row_bytes, in + row * row_bytes, row_bytes);
  }
}

at::Tensor converted(char* data, int64_t bytes, int64_t size, std::string_view name,
                     const std::string& from, const std::string& to) {
  return in_dtype(at::from_blob(data, {bytes / size}, scalar_type(from)), to, name);
}

}  // namespace

const File& TensorStream::file(int number) {
  if (open_.size() >= kMaxOpenFiles && !open_.count(number)) open_.clear();
  auto found = open_.find(number);
  if (found == open_.end())
    found = open_.emplace(number, File::open_to_read(index_.files.at(number))).first;
  return found->second;
}

/// Copies rows [first, last) of the tensor, as far as the piece has them, to their place in `out`,
/// which begins with row `first`.
void TensorStream::read_piece(const StoredTensor& tensor, const StoredPiece& piece, int64_t first,
                              int64_t last, char* out) {
  const int64_t size = bits_of(tensor.dtype) / 8;
  const int64_t offset = piece.offsets.empty() ? 0 : piece.offsets[0];
  const Rows own = rows_of(piece.sizes, size), whole = rows_of(tensor.shape, size);
  const int64_t begin = std::max(first, offset), end = std::min(last, offset + own.count);
  if (begin >= end || own.bytes == 0) return;
  const int64_t position = piece.position + (begin - offset) * own.bytes;
  const int64_t bytes = (end - begin) * own.bytes;
  char* const target = out + (begin - first) * whole.bytes;
  if (own.bytes == whole.bytes) {
    file(piece.file).read(position, target, bytes);
    if (!piece.hash.empty()) hashers_[&piece].update(target, bytes);
    return;
  }

  // copies runs that are contiguous on both sides, up to the last dimension that is split
  piece_.resize(bytes);
  file(piece.file).read(position, piece_.data(), bytes);
  if (!piece.hash.empty()) hashers_[&piece].update(piece_.data(), bytes);
  size_t cut = tensor.shape.size() - 1;
  int64_t stride = size;  // bytes of one step in dimension `cut`
  while (piece.sizes[cut] == tensor.shape[cut]) stride *= tensor.shape[cut--];
  const int64_t run = stride * piece.sizes[cut];
  std::vector<int64_t> at(cut, 0);  // dimensions before `cut`, within the piece
  at[0] = begin - offset;
  for (int64_t done = 0; done < bytes; done += run) {
    int64_t place = 0;
    for (size_t d = 0; d < cut; ++d)
      place = place * tensor.shape[d] + at[d] + (d == 0 ? offset - first : piece.offsets[d]);
    place = (place * tensor.shape[cut] + piece.offsets[cut]) * stride;
    std::memcpy(out + place, piece_.data() + done, run);
    for (size_t d = cut; d-- > 0;) {
      if (++at[d] < piece.sizes[d] || d == 0) break;
      at[d] = 0;
    }
  }
}

void TensorStream::read_rows(const StoredTensor& tensor, int64_t first, int64_t last,
                             std::vector<char>& out) {
  out.resize((last - first) * rows_of(tensor.shape, bits_of(tensor.dtype) / 8).bytes);
  for (const StoredPiece& piece : tensor.pieces) read_piece(tensor, piece, first, last, out.data());
}

/// Blocks follow the order of rows, so each piece was read from its first byte to its last.
void TensorStream::check_hashes(std::string_view name) {
  for (const auto& [piece, hasher] : hashers_)
    TITAN_CHECK(hasher.hex() == piece->hash, data, index_.files[piece->file].string(), ": tensor ",
                name, " is damaged: its hash is ", hasher.hex(), ", the file says ", piece->hash);
}

void TensorStream::read(std::string_view name, const TensorForm& form,
                        const std::function<void(const char*, int64_t)>& take) {
  const auto found = index_.tensors.find(name);
  TITAN_ASSERT(found != index_.tensors.end(), "tensor ", name, " is not in the index");
  const StoredTensor& tensor = found->second;
  const int64_t size = element_bytes(name, tensor.dtype);
  const bool converts = form.dtype != tensor.dtype;
  TITAN_CHECK(!converts || (is_convertible(tensor.dtype) && is_convertible(form.dtype)), data,
              "tensor ", name, " is of type ", tensor.dtype, " and cannot become ", form.dtype,
              "; only F64, F32, BF16 and F16 are converted");

  const Rows rows = rows_of(tensor.shape, size);
  const bool reorders = form.order != RowOrder::as_stored;
  // rows that must be in one block
  const int64_t step = reorders ? rows_of_head(rows.count, form, name) : 1;
  if (rows.bytes == 0 || rows.count == 0) return;

  at::NoGradGuard no_grad;
  hashers_.clear();
  const int64_t block =
      std::max<int64_t>(1, kBlockBytes / (rows.bytes * std::max<int64_t>(step, 1)));
  for (int64_t first = 0; first < rows.count; first += block * step) {
    const int64_t last = std::min(rows.count, first + block * step);
    read_rows(tensor, first, last, rows_);
    if (reorders) {
      ordered_.resize(rows_.size());
      reorder(rows_.data(), last - first, rows.bytes, step, form.order, ordered_.data());
      std::swap(rows_, ordered_);
    }
    const auto bytes = static_cast<int64_t>(rows_.size());
    if (!converts) {
      take(rows_.data(), bytes);
      continue;
    }
    const at::Tensor result = converted(rows_.data(), bytes, size, name, tensor.dtype, form.dtype);
    take(static_cast<const char*>(result.const_data_ptr()), static_cast<int64_t>(result.nbytes()));
  }
  check_hashes(name);
}

}  // namespace titan::core
