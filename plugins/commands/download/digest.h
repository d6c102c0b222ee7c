// The two checksums by which the hub names contents, computed while bytes pass. Used by
// file_transfer.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "remote_file.h"

namespace titan::download {

/// Checksum of a stream of bytes; `file` says which one and, for git_blob, the size it starts with.
class Digest {
 public:
  explicit Digest(const RemoteFile& file);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void update(const void* data, size_t bytes);
  /// Of everything so far, as lower case hexadecimal digits. Ends the stream.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace titan::download
