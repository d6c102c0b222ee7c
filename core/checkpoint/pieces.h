// Intersects, reads and checks stored rectangles and the parts of them that ranks need. Used by the
// reader.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <titan/checkpoints/tensor_index.h>

#include "core/checkpoint/state.h"

namespace titan::core {

/// One stored rectangle; every rank numbers them in the same way.
struct Piece {
  const std::string* name;  ///< in the index
  const StoredTensor* tensor;
  const StoredPiece* stored;
};

/// A part of a piece that one rank needs.
struct Need {
  int64_t piece = 0;
  int rank = 0;
  nn::Slice slice;                      ///< within the whole tensor
  const StateTensor* target = nullptr;  ///< set for this rank's own needs
};

/// The overlap of two rectangles of one tensor, if any.
std::optional<nn::Slice> overlap(const nn::Slice& slice, const StoredPiece& piece);

/// The view of `slice` within `tensor`, which holds the rectangle that starts at `offsets`.
at::Tensor part_of(at::Tensor tensor, const std::vector<int64_t>& offsets, const nn::Slice& slice);

/// A piece's values on the CPU, in the stored type. Throws a data Error that names file and tensor
/// when the hash differs, an io Error when they cannot be read.
at::Tensor read_piece(const Piece& piece, const TensorIndex& index);

/// Reads a piece into the tensor that needs it: directly where both have the same layout, else
/// through a temporary tensor.
void read_into(const Need& need, const Piece& piece, const TensorIndex& index);

/// Copies a part of a piece to where it is needed.
void fill(const Need& need, const at::Tensor& values);

/// Pieces read at the same time: a disk, above all a remote one, reaches its full speed only with
/// several requests, and each needs a CPU for hashing.
constexpr size_t kReadsAtOnce = 4;

/// Reads pieces in the given order, ahead of the calls of `next`. `index` outlives it.
class PieceReader {
 public:
  PieceReader(std::vector<Piece> pieces, const TensorIndex& index);
  at::Tensor next();

 private:
  void start();

  std::vector<Piece> pieces_;
  const TensorIndex& index_;
  size_t position_ = 0;
  std::deque<std::future<at::Tensor>> reading_;  // their destructors wait
};

}  // namespace titan::core
