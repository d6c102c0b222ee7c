// A folder of checkpoints, one subfolder step-<N> for each. Used by resume, the purge of old
// checkpoints and titan inspect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/export.h>

namespace titan {

/// The file that makes a Hugging Face folder complete: the index, or the single file of weights.
inline constexpr const char* kHfIndexName = "model.safetensors.index.json";
inline constexpr const char* kHfSingleName = "model.safetensors";

/// Subfolder of a checkpoint during its export: the shards from which the export is assembled.
inline constexpr const char* kExportFolderName = "sharded";

/// The file that marks a checkpoint as complete.
enum class Marker {
  none,      ///< incomplete: being written, or its writer was killed
  manifest,  ///< Titan's manifest.json
  hf_index,  ///< model.safetensors.index.json or model.safetensors: weights by Hugging Face's names
  dcp,       ///< torch.distributed.checkpoint's .metadata: complete, but pickled, not readable here
};

struct CheckpointStep {
  int64_t step = 0;
  std::filesystem::path path;
  Marker marker = Marker::none;
};

/// The marker of `folder` itself; of several the first in the order manifest, hf_index, dcp.
TITAN_API Marker marker_of(const std::filesystem::path& folder);
/// Every step-<N> in `folder`, ascending; empty if the folder does not exist. Throws an io Error if
/// it cannot be listed.
TITAN_API std::vector<CheckpointStep> list_steps(const std::filesystem::path& folder);
/// `folder`/step-<step>
TITAN_API std::filesystem::path step_path(const std::filesystem::path& folder, int64_t step);

/// Path of a complete checkpoint that is set aside while its step is saved again.
TITAN_API std::filesystem::path aside_path(const std::filesystem::path& step_folder);

/// Removes the folder with its content, the marker first. Throws an io Error if that fails.
TITAN_API void remove_checkpoint(const std::filesystem::path& step_folder);
/// Moves checkpoints that were set aside back if the new save never became complete; else removes
/// them.
TITAN_API void put_back_asides(const std::filesystem::path& folder);
/// Removes the working folders of exports that were killed after they had become complete.
TITAN_API void remove_export_folders(const std::filesystem::path& folder);

}  // namespace titan
