// Writes safetensors files with chosen tensors, whole or in pieces, and reads tensors back. Used by
// the tests of weight conversion.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tests/plugins/test_folder.h"

namespace titan::testing {

/// A tensor, or the rectangle of one that begins at `offsets`.
struct Stored {
  std::string name;
  at::Tensor tensor;
  std::vector<int64_t> offsets = {};
};

/// In row-major order.
std::string bytes_of(const at::Tensor& tensor);

/// The same shape, type and bytes.
bool same_bytes(const at::Tensor& a, const at::Tensor& b);

/// Writes one file, with sharding metadata and hashes when a tensor has offsets. Returns its path.
std::string write_stored(const TestFolder& folder, const std::string& name,
                         const std::vector<Stored>& tensors);

/// Reads a tensor that the file holds in one piece.
at::Tensor read_stored(const std::string& path, const std::string& name);

}  // namespace titan::testing
