// Deprecated names of titan/checkpoints/unlisted_files.h, until 0.3.
#pragma once

#include <titan/checkpoints/unlisted_files.h>

namespace titan {

inline std::vector<std::string> strays_of_checkpoint(const std::filesystem::path& folder,
                                                     const CheckpointManifest& manifest) {
  return unlisted_in_checkpoint(folder, manifest);
}
inline std::vector<std::string> strays_of_hf_folder(const std::filesystem::path& folder) {
  return unlisted_in_hf_folder(folder);
}
inline int64_t bytes_of_stray(const std::filesystem::path& folder, const std::string& name) {
  return bytes_of_unlisted(folder, name);
}
inline std::string strays_text(const std::vector<std::string>& unlisted,
                               const std::string& by_whom) {
  return unlisted_files_text(unlisted, by_whom);
}

}  // namespace titan
