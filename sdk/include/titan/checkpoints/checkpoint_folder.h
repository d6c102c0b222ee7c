// A folder of checkpoints: one step-<N> each. Used by resume, the purge and titan inspect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/export.h>

namespace titan {

/// What makes a Hugging Face folder complete: the index, or the only file of weights.
inline constexpr const char* kHfIndexName = "model.safetensors.index.json";
inline constexpr const char* kHfSingleName = "model.safetensors";

/// Within a step while it is exported: the shards that the export is made of.
inline constexpr const char* kExportFolderName = "sharded";

/// What says that a step is complete.
enum class Marker {
  none,      ///< not complete: being written, or its writer was ended
  manifest,  ///< Titan's manifest.json
  hf_index,  ///< model.safetensors.index.json or model.safetensors: weights by Hugging Face's names
  dcp,       ///< .metadata of torch.distributed.checkpoint: pickled, complete but not readable here
};

struct CheckpointStep {
  int64_t step = 0;
  std::filesystem::path path;
  Marker marker = Marker::none;
};

/// What says that `folder` itself is complete; manifest before hf_index before dcp.
TITAN_API Marker marker_of(const std::filesystem::path& folder);
/// Every step-<N> in `folder`, ascending; empty when it does not exist. io Error when it cannot be
/// listed.
TITAN_API std::vector<CheckpointStep> list_steps(const std::filesystem::path& folder);
/// `folder`/step-<step>
TITAN_API std::filesystem::path step_path(const std::filesystem::path& folder, int64_t step);

/// Where a complete checkpoint waits while its folder is written anew.
TITAN_API std::filesystem::path aside_path(const std::filesystem::path& step_folder);

/// Removes it with all it holds, what makes it complete first. io Error when that fails.
TITAN_API void remove_checkpoint(const std::filesystem::path& step_folder);
/// Checkpoints that wait aside for a save that never became complete get their place back.
TITAN_API void put_back_asides(const std::filesystem::path& folder);
/// The working folders of exports that were ended after they had become complete go.
TITAN_API void remove_export_folders(const std::filesystem::path& folder);

}  // namespace titan
