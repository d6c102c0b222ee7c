// Reads a stored tensor from its pieces, converted to another dtype and order of rows, one block at
// a time. Used to export and import files of weights.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <titan/checkpoints/tensor_index.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>

#include "core/exchange/tensor_form.h"

namespace titan::core {

/// Reads tensors of one index. Holds a few blocks of 8 MiB (or of one row or head, if that is
/// larger) and keeps files open. Thread: one at a time.
class TensorStream {
 public:
  /// `index` outlives it.
  explicit TensorStream(const TensorIndex& index) : index_(index) {}

  /// Passes the bytes of tensor `name` to `take`, row-major, from the first to the last. Rounds to
  /// the nearest, ties to even.
  ///
  /// Throws a data Error that names the tensor for a dtype that cannot be converted, rows that do
  /// not divide into heads of even size, and a finite value that `form.dtype` cannot hold. At the
  /// end throws a data Error when a hash differs from the file's. Throws an io Error when a file
  /// cannot be read.
  void read(std::string_view name, const TensorForm& form,
            const std::function<void(const char* data, int64_t bytes)>& take);

 private:
  const File& file(int number);
  void read_rows(const StoredTensor& tensor, int64_t first, int64_t last, std::vector<char>& out);
  void read_piece(const StoredTensor& tensor, const StoredPiece& piece, int64_t first, int64_t last,
                  char* out);
  void check_hashes(std::string_view name);

  const TensorIndex& index_;
  std::map<int, File> open_;
  std::map<const StoredPiece*, Hasher> hashers_;  // of this tensor's pieces with a hash
  std::vector<char> piece_, rows_, ordered_;      // members to reuse their memory
};

}  // namespace titan::core
