// Compares a checkpoint with what its manifest and headers say. Used by titan inspect, and before
// loading.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/export.h>

namespace titan {

/// Opens every file of the manifest, compares sizes and the hashes of headers, and indexes its
/// tensors. Does not read the tensors' bytes. Throws one data Error that lists everything found: a
/// missing file, a size that differs (with the tensors that are cut off), a header that differs,
/// whatever index_headers finds.
TITAN_API TensorIndex open_checkpoint(const std::filesystem::path& folder,
                                      const CheckpointManifest& manifest);

/// What open_checkpoint would throw, line by line; empty when all is well.
TITAN_API std::vector<std::string> find_damage_of_headers(const std::filesystem::path& folder,
                                                          const CheckpointManifest& manifest);

/// Reads every byte and compares hashes: of each tensor and of each file. One line per damage,
/// naming file and tensor; empty when all is well. Files are read once. `progress`: called with the
/// number of bytes since its last call.
TITAN_API std::vector<std::string> find_damage(const std::filesystem::path& folder,
                                               const CheckpointManifest& manifest,
                                               const std::function<void(int64_t)>& progress = {});

}  // namespace titan
