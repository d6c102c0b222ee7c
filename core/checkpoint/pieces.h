// Stored rectangles and the parts of them that ranks need: intersecting, reading, checking. Used by
// the reader.
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

/// One stored rectangle; every rank numbers them alike.
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
  const StateTensor* target = nullptr;  ///< of this rank's own needs
};

/// Where two rectangles of one tensor overlap; nothing when they do not.
std::optional<nn::Slice> overlap(const nn::Slice& slice, const StoredPiece& piece);

/// The view of `tensor`, which holds the rectangle that starts at `offsets`, on `slice`.
at::Tensor part_of(at::Tensor tensor, const std::vector<int64_t>& offsets, const nn::Slice& slice);

/// A piece's values on the CPU, in the stored type. Throws a data Error naming file and tensor when
/// they do not have their hash, an io Error when they cannot be read.
at::Tensor read_piece(const Piece& piece, const TensorIndex& index);

/// The same straight into the tensor that needs it where that is laid out alike; else through
/// memory of its own.
void read_into(const Need& need, const Piece& piece, const TensorIndex& index);

/// Copies a part of a piece to where it is needed.
void fill(const Need& need, const at::Tensor& values);

/// So many pieces are read at once: a disk, and above all one that is far away, gives its full
/// speed only to several requests, and hashing takes a CPU meanwhile.
constexpr size_t kReadsAtOnce = 4;

/// Reads pieces in the given order, ahead of what `next` has given out. `index` outlives it.
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
