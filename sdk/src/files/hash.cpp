#include <titan/files/hash.h>

#include <xxhash.h>

#include <algorithm>
#include <new>
#include <utility>

#include <titan/error.h>

namespace titan {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

std::string to_hex(const XXH128_hash_t& hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  std::string text;
  text.reserve(2 * sizeof bytes.digest);
  for (const unsigned char byte : bytes.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

struct Hasher::State {
  XXH3_state_t* xxh3 = XXH3_createState();
  State() {
    if (!xxh3) throw std::bad_alloc();
    XXH3_128bits_reset(xxh3);
  }
  State(const State&) = delete;
  ~State() { XXH3_freeState(xxh3); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;

void Hasher::update(const void* data, int64_t bytes) {
  TITAN_ASSERT(bytes >= 0, "a hash over ", bytes, " bytes");
  XXH3_128bits_update(state_->xxh3, data, static_cast<size_t>(bytes));
}

std::string Hasher::hex() const {
  return to_hex(XXH3_128bits_digest(state_->xxh3));
}

std::string hash_hex(std::string_view bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

bool is_hash(std::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string hash64_hex(std::string_view bytes) {
  return hex_text(XXH3_64bits(bytes.data(), bytes.size()));
}

std::string hex_text(uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[number >> shift & 15];
  return text;
}

}  // namespace titan
