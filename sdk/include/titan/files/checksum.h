// SHA-256 of bytes and files, as sha256sum prints it: 64 hexadecimal digits. For files that someone
// else could have changed on purpose; titan/files/hash.h is faster and finds accidents.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(checksum);

namespace titan {

TITAN_API std::string sha256_of(std::string_view bytes);
/// Reads the file in blocks. Throws an io Error that names the path.
TITAN_API std::string sha256_of_file(const std::filesystem::path& path);
/// Whether `text` is 64 hexadecimal digits in lower case.
TITAN_API bool is_sha256(std::string_view text);

}  // namespace titan
