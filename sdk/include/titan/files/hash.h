// XXH3-128 of files and tensors, printed as xxhsum -H2 prints it: 32 hexadecimal digits. Used by
// the writer, the reader and titan inspect.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// Hash of a stream of bytes.
class TITAN_API Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  void update(const void* data, int64_t bytes);
  /// The hash of all bytes so far, as 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

TITAN_API std::string hash_hex(std::string_view bytes);
/// Whether `text` is 32 hexadecimal digits in lower case, as Hasher prints them.
TITAN_API bool is_hash(std::string_view text);

/// XXH3-64, as 16 hexadecimal digits: for uses where a short hash is enough.
TITAN_API std::string hash64_hex(std::string_view bytes);
/// `number` as 16 hexadecimal digits.
TITAN_API std::string hex_text(uint64_t number);

}  // namespace titan
