// Runs minisign, which signs files with the author's secret key. Used by `titan plugin pack`.
#pragma once

#include <filesystem>
#include <string>

#include "minisign.h"

namespace titan::plugin_index {

/// Signs `file` and writes the signature to `output`. minisign asks for the key's password on the
/// terminal. Throws an io Error with the next action if minisign is missing or fails.
void sign_file(const std::filesystem::path& file, const std::filesystem::path& secret_key,
               const std::string& comment, const std::filesystem::path& output);

/// Writes the public key of a secret key to `output`.
void write_public_key(const std::filesystem::path& secret_key, const std::filesystem::path& output);

}  // namespace titan::plugin_index
