// Computes the two kinds of checksum that the hub uses, as bytes arrive. Used by file_transfer.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "remote_file.h"

namespace titan::download {

/// Checksum of a stream of bytes. `file` selects the kind and gives the size, which git_blob hashes
/// first.
class Digest {
 public:
  explicit Digest(const RemoteFile& file);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void update(const void* data, size_t bytes);
  /// Of all bytes so far, in lower-case hexadecimal digits. Ends the stream.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace titan::download
