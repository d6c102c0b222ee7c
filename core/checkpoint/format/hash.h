// XXH3-128 of files and tensors, printed as xxhsum -H2 prints it: 32 hexadecimal digits. Used by
// the writer, the reader and titan inspect.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace titan::core {

/// Hash of a stream of bytes.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  void update(const void* data, int64_t bytes);
  /// Of everything so far, as 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_hex(std::string_view bytes);

}  // namespace titan::core
