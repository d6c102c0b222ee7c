#include <titan/files/checksum.h>

#include <algorithm>
#include <vector>

#include <sodium/crypto_hash_sha256.h>

#include <titan/files/file.h>

namespace titan {
namespace {

std::string hex_of(const unsigned char (&digest)[crypto_hash_sha256_BYTES]) {
  std::string text;
  for (const unsigned char byte : digest)
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  return text;
}

}  // namespace

std::string sha256_of(std::string_view bytes) {
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex_of(digest);
}

std::string sha256_of_file(const std::filesystem::path& path) {
  constexpr int64_t kBlock = 1 << 20;
  const File file = File::open_to_read(path);
  const int64_t size = file.size();
  std::vector<char> block(static_cast<size_t>(std::min(size, kBlock)));
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  for (int64_t at = 0; at < size; at += kBlock) {
    const int64_t bytes = std::min(size - at, kBlock);
    file.read(at, block.data(), bytes);
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(block.data()),
                              static_cast<unsigned long long>(bytes));
  }
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_final(&state, digest);
  return hex_of(digest);
}

bool is_sha256(std::string_view text) {
  return text.size() == 2 * crypto_hash_sha256_BYTES &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace titan
