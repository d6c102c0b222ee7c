// One file of a repo as the hub lists it. Used by everything in core/download.
#pragma once

#include <cstdint>
#include <string>

namespace titan::download {

enum class Checksum {
  sha256,    ///< of the content: files that the hub keeps in its large file storage
  git_blob,  ///< SHA-1 of "blob <size>\0" and the content: all others
};

struct RemoteFile {
  std::string path;  ///< relative, with slashes; checked by require_harmless
  int64_t size = 0;  ///< bytes
  Checksum checksum = Checksum::sha256;
  std::string expected;  ///< the checksum's hexadecimal digits, lower case
};

}  // namespace titan::download
