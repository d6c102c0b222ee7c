#include "minisign.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <sodium.h>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/program/text.h>
#include <titan/shown_text.h>

namespace titan::plugin_index {
namespace {

constexpr std::string_view kTrusted = "trusted comment: ";
constexpr std::string_view kUntrusted = "untrusted comment: ";
constexpr size_t kHashBytes = 64;
using ContentHash = std::array<unsigned char, kHashBytes>;

/// The decoded bytes; absent unless `text` is the base64 of exactly N bytes.
template <size_t N>
std::optional<std::array<unsigned char, N>> from_base64(std::string_view text) {
  std::array<unsigned char, N> bytes{};
  size_t length = 0;
  const char* end = nullptr;
  if (sodium_base642bin(bytes.data(), N, text.data(), text.size(), nullptr, &length, &end,
                        sodium_base64_VARIANT_ORIGINAL) != 0 ||
      length != N || end != text.data() + text.size())
    return std::nullopt;
  return bytes;
}

std::string hex_id(const std::array<unsigned char, 8>& id) {
  std::string text;
  for (auto byte = id.rbegin(); byte != id.rend(); ++byte)  // minisign reads it as little-endian
    for (const int digit : {*byte >> 4, *byte & 15}) text += "0123456789ABCDEF"[digit];
  return text;
}

/// Lines without their ends, "\n" or "\r\n".
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void require_signed_hash(const ContentHash& hash, const Signature& signature, const PublicKey& key,
                         const std::string& origin) {
  TITAN_CHECK(signature.key_id == key.id, plugin, origin, " is signed by the key ",
              signature.key_id_text(), " instead of ", key.id_text());
  TITAN_CHECK(crypto_sign_verify_detached(signature.signature.data(), hash.data(), hash.size(),
                                          key.key.data()) == 0,
              plugin, origin, " is not what the key ", key.id_text(),
              " has signed: its content or its signature was changed");
  std::vector<unsigned char> signed_comment(signature.signature.begin(), signature.signature.end());
  signed_comment.insert(signed_comment.end(), signature.comment.begin(), signature.comment.end());
  TITAN_CHECK(crypto_sign_verify_detached(signature.comment_signature.data(), signed_comment.data(),
                                          signed_comment.size(), key.key.data()) == 0,
              plugin, "the trusted comment of ", origin, " was changed");
}

}  // namespace

std::string PublicKey::id_text() const {
  return hex_id(id);
}

std::string Signature::key_id_text() const {
  return hex_id(key_id);
}

std::string PublicKey::text() const {
  std::array<unsigned char, 42> bytes{'E', 'd'};
  std::copy(id.begin(), id.end(), bytes.begin() + 2);
  std::copy(key.begin(), key.end(), bytes.begin() + 10);
  std::array<char, sodium_base64_ENCODED_LEN(42, sodium_base64_VARIANT_ORIGINAL)> text{};
  return sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(),
                           sodium_base64_VARIANT_ORIGINAL);
}

PublicKey parse_public_key(std::string_view text, const std::string& origin) {
  std::string_view line = trimmed(text);
  if (line.starts_with(kUntrusted))
    line = trimmed(line.substr(std::min(line.find('\n'), line.size())));
  const auto bytes = from_base64<42>(line);
  TITAN_CHECK(bytes && (*bytes)[0] == 'E' && (*bytes)[1] == 'd', config, origin,
              " is not a public key of minisign: 56 characters that begin with RW, or a file "
              "minisign.pub");
  PublicKey key;
  std::copy_n(bytes->begin() + 2, key.id.size(), key.id.begin());
  std::copy_n(bytes->begin() + 10, key.key.size(), key.key.begin());
  return key;
}

Signature parse_signature(std::string_view text, const std::string& origin) {
  const std::vector<std::string_view> lines = lines_of(text);
  TITAN_CHECK(
      lines.size() == 4 && lines[0].starts_with(kUntrusted) && lines[2].starts_with(kTrusted),
      plugin, "the signature of ", origin, " does not have the four lines of minisign");
  const auto bytes = from_base64<74>(lines[1]);
  const auto of_comment = from_base64<64>(lines[3]);
  TITAN_CHECK(bytes && of_comment, plugin, "the signature of ", origin,
              " is not base64 of the right length");
  TITAN_CHECK((*bytes)[0] == 'E' && (*bytes)[1] == 'D', plugin, "the signature of ", origin,
              " is not of the kind 'ED' (Ed25519 over BLAKE2b-512); sign it with minisign 0.10 or "
              "later");
  Signature signature;
  std::copy_n(bytes->begin() + 2, signature.key_id.size(), signature.key_id.begin());
  std::copy_n(bytes->begin() + 10, signature.signature.size(), signature.signature.begin());
  signature.comment_signature = *of_comment;
  signature.comment = lines[2].substr(kTrusted.size());
  return signature;
}

void require_signed(std::string_view content, const Signature& signature, const PublicKey& key,
                    const std::string& origin) {
  ContentHash hash;
  crypto_generichash(hash.data(), hash.size(),
                     reinterpret_cast<const unsigned char*>(content.data()), content.size(),
                     nullptr, 0);
  require_signed_hash(hash, signature, key, origin);
}

void require_file_signed(const std::filesystem::path& file, const Signature& signature,
                         const PublicKey& key, const std::string& origin) {
  constexpr int64_t kBlock = 1 << 20;
  const File opened = File::open_to_read(file);
  const int64_t size = opened.size();
  std::vector<char> block(static_cast<size_t>(std::min(size, kBlock)));
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, kHashBytes);
  for (int64_t at = 0; at < size; at += kBlock) {
    const int64_t bytes = std::min(size - at, kBlock);
    opened.read(at, block.data(), bytes);
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(block.data()),
                              static_cast<unsigned long long>(bytes));
  }
  ContentHash hash;
  crypto_generichash_final(&state, hash.data(), hash.size());
  require_signed_hash(hash, signature, key, origin);
}

}  // namespace titan::plugin_index
