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
/// 32 hexadecimal digits in lower case, as Hasher prints them.
bool is_hash(std::string_view text);

/// XXH3-64, as 16 hexadecimal digits: where short is enough.
std::string hash64_hex(std::string_view bytes);
/// 16 hexadecimal digits.
std::string hex_text(uint64_t number);

}  // namespace titan::core
