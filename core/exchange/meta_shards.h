// Weights as Meta gave them out for several GPUs: consolidated.00.safetensors, .01, ..., each with
// a part of every tensor and without a word on which. Used by titan convert.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <titan/checkpoints/tensor_index.h>

namespace titan::core {

/// As index_files, but files that hold tensors of the same names are joined in the order of
/// `files`: along the one dimension in which the parts are smaller than the whole, by `shapes`;
/// parts as large as the whole are copies, of which the first is taken. Names without a shape there
/// are left as the first file has them.
///
/// Throws a data Error that lists every tensor whose parts make no whole, and copies that differ.
TensorIndex index_meta_shards(const std::vector<std::filesystem::path>& files,
                              const std::map<std::string, std::vector<int64_t>>& shapes);

}  // namespace titan::core
