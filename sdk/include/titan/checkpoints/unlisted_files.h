// Unlisted files: files in a checkpoint's folder that its manifest or index does not name. Used by
// titan inspect, which does not count them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/checkpoints/manifest.h>
#include <titan/export.h>

namespace titan {

/// Files and folders that the manifest does not name, sorted; folders end with "/".
TITAN_API std::vector<std::string> unlisted_in_checkpoint(const std::filesystem::path& folder,
                                                          const CheckpointManifest& manifest);
/// In a Hugging Face folder: files of weights that its index does not name, or, without an index,
/// all but model.safetensors; also the working folder of its export. Empty for a folder with
/// neither index nor model.safetensors, and for an index that cannot be read.
TITAN_API std::vector<std::string> unlisted_in_hf_folder(const std::filesystem::path& folder);

/// Bytes of an unlisted file, or of all files in an unlisted folder.
TITAN_API int64_t bytes_of_unlisted(const std::filesystem::path& folder, const std::string& name);

/// A message that the unlisted files are not counted, with their names; empty if there are none.
/// `by_whom`: the file that does not list them, "its manifest".
TITAN_API std::string unlisted_files_text(const std::vector<std::string>& unlisted,
                                          const std::string& by_whom);

}  // namespace titan
