#include "digest.h"

#include <openssl/evp.h>

#include <titan/error.h>

namespace titan::download {

struct Digest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Digest::Digest(const RemoteFile& file) : state_(std::make_unique<State>()) {
  const bool is_git = file.checksum == Checksum::git_blob;
  TITAN_CHECK(state_->context &&
                  EVP_DigestInit_ex(state_->context, is_git ? EVP_sha1() : EVP_sha256(), nullptr),
              io, "libcrypto does not offer ", is_git ? "SHA-1" : "SHA-256",
              ", which checks files of the hub");
  if (!is_git) return;
  const std::string head = "blob " + std::to_string(file.size);
  update(head.c_str(), head.size() + 1);  // the closing NUL is part of it
}

Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::update(const void* data, size_t bytes) {
  TITAN_ASSERT(EVP_DigestUpdate(state_->context, data, bytes) == 1);
}

std::string Digest::hex() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int count = 0;
  TITAN_ASSERT(EVP_DigestFinal_ex(state_->context, bytes, &count) == 1);
  std::string text;
  for (unsigned int i = 0; i < count; ++i)
    for (const int digit : {bytes[i] >> 4, bytes[i] & 15}) text += "0123456789abcdef"[digit];
  return text;
}

}  // namespace titan::download
