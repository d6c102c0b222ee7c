// Reads weights in Meta's form for several GPUs: consolidated.00.safetensors, .01, ... Each file
// has a part of every tensor, but not its offsets. Used by titan convert.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <titan/checkpoints/tensor_index.h>

namespace titan::core {

/// As index_files, but joins tensors of the same name in the order of `files`, along the one
/// dimension in which the parts are smaller than the shape in `shapes`. Parts as large as the whole
/// are copies, of which the first is used. For names without a shape, the first file's tensor is
/// used.
///
/// Throws a data Error that lists every tensor whose parts do not fit, and copies that differ.
TensorIndex index_meta_shards(const std::vector<std::filesystem::path>& files,
                              const std::map<std::string, std::vector<int64_t>>& shapes);

}  // namespace titan::core
