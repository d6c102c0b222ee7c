// Signatures in minisign's format: Ed25519 over the BLAKE2b-512 hash of a file, and a signed
// comment. Used for the index and for each plugin file.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

namespace titan::plugin_index {

struct PublicKey {
  std::array<unsigned char, 8> id{};
  std::array<unsigned char, 32> key{};

  /// As minisign prints it: 16 hexadecimal digits.
  std::string id_text() const;
  /// "RW...": the 56 characters that `minisign -P` takes.
  std::string text() const;

  friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

struct Signature {
  std::array<unsigned char, 8> key_id{};
  std::array<unsigned char, 64> signature{}, comment_signature{};
  std::string comment;  ///< the trusted comment

  std::string key_id_text() const;
};

/// Reads "RW..." or the text of a minisign.pub. Throws a config Error that names `origin`.
PublicKey parse_public_key(std::string_view text, const std::string& origin);
/// Reads the text of a .minisig file. Throws a plugin Error that names `origin`.
Signature parse_signature(std::string_view text, const std::string& origin);

/// Throw a plugin Error if the signature is not by `key`, or if the content or the trusted comment
/// is not what was signed. `origin` is what was signed, in messages.
void require_signed(std::string_view content, const Signature& signature, const PublicKey& key,
                    const std::string& origin);
void require_file_signed(const std::filesystem::path& file, const Signature& signature,
                         const PublicKey& key, const std::string& origin);

}  // namespace titan::plugin_index
