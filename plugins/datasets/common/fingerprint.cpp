// See fingerprint.h.
#include "plugins/datasets/common/fingerprint.h"

#include <array>
#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace titan::datasets {

Fingerprint& Fingerprint::add(std::string_view text) {
  ((content_ += std::to_string(text.size())) += ':') += text;
  return *this;
}

std::string Fingerprint::hex() const {
  const XXH128_hash_t hash = XXH3_128bits(content_.data(), content_.size());
  std::array<char, 33> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return hex.data();
}

}  // namespace titan::datasets
