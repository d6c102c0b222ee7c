// What lies in a checkpoint's folder and is no part of it. Used by titan inspect, so that what
// nobody loads is not counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/checkpoints/manifest.h>
#include <titan/export.h>

namespace titan {

/// Names of files and folders beside those of the manifest, sorted; folders end with "/".
TITAN_API std::vector<std::string> strays_of_checkpoint(const std::filesystem::path& folder,
                                                        const CheckpointManifest& manifest);
/// Of a Hugging Face folder: weights that its index does not name, or that lie beside its only
/// file, and the working folder of the export that made it. Empty for a folder with neither, and
/// for an index that cannot be read.
TITAN_API std::vector<std::string> strays_of_hf_folder(const std::filesystem::path& folder);

/// Bytes of such a file, or of all in such a folder.
TITAN_API int64_t bytes_of_stray(const std::filesystem::path& folder, const std::string& name);

/// "2 strays, which its manifest does not name, are not counted: notes.txt, old/". Empty for none.
TITAN_API std::string strays_text(const std::vector<std::string>& strays,
                                  const std::string& by_whom);

}  // namespace titan
