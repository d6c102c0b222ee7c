#include "core/checkpoint/pieces.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>

#include <titan/program/stop_signals.h>
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr int64_t kPieceChunk = int64_t{8} << 20;
constexpr int64_t kAhead = int64_t{32} << 20;  // how far the file is read ahead

void read_and_check(const Piece& piece, const TensorIndex& index, char* out) {
  const std::filesystem::path& path = index.files[static_cast<size_t>(piece.stored->file)];
  Hasher hasher;
  try {
    const File file = File::open_to_read(path);
    const int64_t position = piece.stored->position;
    file.expect_read(position, std::min(kAhead, piece.stored->bytes));
    for (int64_t done = 0; done < piece.stored->bytes; done += kPieceChunk) {
      const int64_t now = std::min(kPieceChunk, piece.stored->bytes - done);
      if (done + kAhead < piece.stored->bytes)
        file.expect_read(position + done + kAhead, kPieceChunk);
      file.read(position + done, out + done, now);
      if (!piece.stored->hash.empty()) hasher.update(out + done, now);
    }
  } catch (Error& e) {
    e.with_context("while reading tensor '" + *piece.name + "' of '" + path.string() + "'");
    throw;
  }
  if (piece.stored->hash.empty()) return;
  const std::string hash = hasher.hex();
  TITAN_CHECK(hash == piece.stored->hash, data, "tensor '", *piece.name, "' in '", path.string(),
              "' is damaged: its bytes have the XXH3-128 ", hash, ", but written were ",
              piece.stored->hash, "; load another step (checkpoint.load_step) or restore the file");
}

/// Whether the piece's bytes can be read into the target without conversion.
bool is_in_place(const Piece& piece, const Need& need) {
  const at::Tensor& target = need.target->tensor;
  return need.slice.sizes == need.target->slice.sizes && need.slice.sizes == piece.stored->sizes &&
         target.is_cpu() && target.is_contiguous() &&
         target.scalar_type() == scalar_type(piece.tensor->dtype);
}

}  // namespace

std::optional<nn::Slice> overlap(const nn::Slice& slice, const StoredPiece& piece) {
  nn::Slice common;
  for (size_t dim = 0; dim < slice.sizes.size(); ++dim) {
    const int64_t begin = std::max(slice.offsets[dim], piece.offsets[dim]);
    const int64_t end =
        std::min(slice.offsets[dim] + slice.sizes[dim], piece.offsets[dim] + piece.sizes[dim]);
    if (end <= begin) return std::nullopt;
    common.offsets.push_back(begin);
    common.sizes.push_back(end - begin);
  }
  return common;
}

at::Tensor part_of(at::Tensor tensor, const std::vector<int64_t>& offsets, const nn::Slice& slice) {
  for (size_t dim = 0; dim < slice.sizes.size(); ++dim)
    tensor = tensor.narrow(static_cast<int64_t>(dim), slice.offsets[dim] - offsets[dim],
                           slice.sizes[dim]);
  return tensor;
}

at::Tensor read_piece(const Piece& piece, const TensorIndex& index) {
  at::Tensor memory =
      at::empty(piece.stored->sizes, at::TensorOptions().dtype(scalar_type(piece.tensor->dtype)));
  TITAN_ASSERT(static_cast<int64_t>(memory.nbytes()) == piece.stored->bytes, *piece.name);
  read_and_check(piece, index, static_cast<char*>(memory.mutable_data_ptr()));
  return memory;
}

void read_into(const Need& need, const Piece& piece, const TensorIndex& index) {
  if (is_in_place(piece, need))
    read_and_check(piece, index, static_cast<char*>(need.target->tensor.mutable_data_ptr()));
  else
    fill(need, part_of(read_piece(piece, index), piece.stored->offsets, need.slice));
}

void fill(const Need& need, const at::Tensor& values) {
  part_of(need.target->tensor, need.target->slice.offsets, need.slice).copy_(values);
}

PieceReader::PieceReader(std::vector<Piece> pieces, const TensorIndex& index)
    : pieces_(std::move(pieces)), index_(index) {
  while (reading_.size() < kReadsAtOnce && position_ < pieces_.size()) start();
}

at::Tensor PieceReader::next() {
  std::future<at::Tensor> read = std::move(reading_.front());
  reading_.pop_front();
  read.wait();
  if (position_ < pieces_.size()) start();
  return read.get();
}

void PieceReader::start() {
  reading_.push_back(std::async(std::launch::async, [this, piece = pieces_[position_++]] {
    block_signals();
    return read_piece(piece, index_);
  }));
}

}  // namespace titan::core
