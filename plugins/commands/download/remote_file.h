// One file of a repo as the hub lists it. Used by all files of this folder.
#pragma once

#include <cstdint>
#include <string>

namespace titan::download {

enum class Checksum {
  sha256,    ///< of the content; for files in the hub's large file storage
  git_blob,  ///< SHA-1 of "blob <size>\0" and the content; for all other files
};

struct RemoteFile {
  std::string path;  ///< relative, with slashes; checked by require_harmless
  int64_t size = 0;  ///< bytes
  Checksum checksum = Checksum::sha256;
  std::string expected;  ///< lower-case hexadecimal digits
};

}  // namespace titan::download
