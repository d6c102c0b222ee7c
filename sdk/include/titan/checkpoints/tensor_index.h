// Index of the tensors in a set of safetensors files. A tensor may be cut into rectangles over
// several files, as in PyTorch's distributed checkpoints in safetensors. Used by the reader, titan
// inspect and titan convert.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <titan/checkpoints/safetensors.h>
#include <titan/export.h>

namespace titan {

/// Prefix of the names of optimizer states.
inline constexpr std::string_view kOptimizerPrefix = "optim.";

/// A rectangle of a tensor and the location of its bytes.
struct StoredPiece {
  int file = 0;  ///< index in TensorIndex::files
  std::vector<int64_t> offsets, sizes;
  int64_t position = 0;  ///< offset of its first byte in the file
  int64_t bytes = 0;
  std::string hash;  ///< XXH3-128; empty if the file records none
};

struct StoredTensor {
  std::string dtype;
  std::vector<int64_t> shape;       ///< of the whole tensor
  std::vector<StoredPiece> pieces;  ///< they cover it without overlap
};

struct TensorIndex {
  std::vector<std::filesystem::path> files;
  std::vector<bool> says_own;  ///< by file: it says that its naming convention is Titan's
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::vector<int64_t> readers;  ///< by file: the rank that can read it; empty: every rank
};

/// Reads the headers of `files`. A file without DCP_SHARDING_INFO holds whole tensors.
///
/// Throws a data Error naming tensor and files: DCP_SHARDING_INFO that is malformed or does not
/// name every tensor, pieces of one tensor that differ in dtype or number of dimensions, overlap,
/// or do not cover the rectangle from 0 to their largest end.
TITAN_API TensorIndex index_files(std::vector<std::filesystem::path> files);
/// The same from headers that were read before; `headers[i]` belongs to `files[i]`.
TITAN_API TensorIndex index_headers(std::vector<std::filesystem::path> files,
                                    const std::vector<SafetensorsHeader>& headers);

/// The *.safetensors files directly in `folder`, sorted by name.
TITAN_API std::vector<std::filesystem::path> safetensors_files(const std::filesystem::path& folder);

}  // namespace titan
