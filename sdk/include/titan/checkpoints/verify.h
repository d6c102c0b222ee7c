// Checks a checkpoint against its manifest and headers. Used by titan inspect and before loading.
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
/// tensors. Does not read the tensors' bytes. Throws one data Error that lists all problems: a
/// missing file, a size that differs (with the truncated tensors), a header that differs, and the
/// errors of index_headers.
TITAN_API TensorIndex open_checkpoint(const std::filesystem::path& folder,
                                      const CheckpointManifest& manifest);

/// The problems that open_checkpoint would throw, one per line; empty if there are none.
TITAN_API std::vector<std::string> find_damage_of_headers(const std::filesystem::path& folder,
                                                          const CheckpointManifest& manifest);

/// Reads every byte once and compares the hashes of each tensor and of each file. Returns one line
/// per damage, naming file and tensor; empty if there is none. `progress`: called with the number
/// of bytes since its last call.
TITAN_API std::vector<std::string> find_damage(const std::filesystem::path& folder,
                                               const CheckpointManifest& manifest,
                                               const std::function<void(int64_t)>& progress = {});

/// The same for a manifest whose files hold only parts of the tensors.
TITAN_API std::vector<std::string> find_damage_of_files(const std::filesystem::path& folder,
                                                        const CheckpointManifest& manifest);

}  // namespace titan
