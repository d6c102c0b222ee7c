#include "charsmap.h"

#include <titan/error.h>

#include "../common/unicode.h"

namespace titan::sentencepiece {
namespace {

constexpr uint32_t kLeaf = 1u << 31;  // the unit is a value, not a node

// A unit that is a node: bits 0-7: the byte of the edge to it, 8: whether it has a value, 9:
// whether the offset is in steps of 256, 10-30: the offset. Children and values are found by
// exclusive or.
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
bool has_value(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t label_of(uint32_t unit) {
  return unit & (kLeaf | 0xFF);
}

uint32_t little_endian(std::string_view bytes) {
  uint32_t number = 0;
  for (size_t i = 4; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

}  // namespace

Charsmap::Charsmap(const NormalizerSpec& spec, const std::string& file) {
  const std::string_view bytes = spec.charsmap;
  if (bytes.empty()) return;
  TITAN_CHECK(bytes.size() >= 4, data, file, ": byte ", spec.charsmap_offset,
              ": precompiled_charsmap has ", bytes.size(), " bytes, too few for its size");
  const uint32_t array_bytes = little_endian(bytes);
  TITAN_CHECK(array_bytes > 0 && array_bytes % 4 == 0 && array_bytes < bytes.size() - 4, data, file,
              ": byte ", spec.charsmap_offset, ": precompiled_charsmap has ", bytes.size(),
              " bytes, but says that its array has ", array_bytes);
  for (size_t i = 4; i < 4 + size_t{array_bytes}; i += 4)
    units_.push_back(little_endian(bytes.substr(i)));
  replacements_ = bytes.substr(4 + size_t{array_bytes});
  check(spec, file);
}

void Charsmap::check(const NormalizerSpec& spec, const std::string& file) const {
  const size_t array_start = spec.charsmap_offset + 4;
  const size_t text_start = array_start + 4 * units_.size();
  TITAN_CHECK(replacements_.back() == '\0', data, file, ": byte ",
              text_start + replacements_.size() - 1,
              ": the last replacement of precompiled_charsmap is not ended by NUL");
  const size_t valid = bpe::valid_utf8_prefix(replacements_);
  TITAN_CHECK(valid == replacements_.size(), data, file, ": byte ", text_start + valid,
              ": a replacement of precompiled_charsmap is not UTF-8");
  for (size_t i = 0; i < units_.size(); ++i) {
    const uint32_t unit = units_[i];
    if ((unit & kLeaf) != 0 || !has_value(unit)) continue;
    const auto fail = [&](const auto&... parts) {
      titan::fail(ErrorKind::data, file, ": byte ", array_start + 4 * i, ": unit ", i,
                  " of precompiled_charsmap ", parts...);
    };
    const size_t place = i ^ offset_of(unit);
    if (place >= units_.size() || (units_[place] & kLeaf) == 0)
      fail("leads to unit ", place, ", which is no value");
    const size_t start = units_[place] & ~kLeaf;
    if (start >= replacements_.size())
      fail("has its replacement at ", start, "; the replacements have ", replacements_.size(),
           " bytes");
    if ((static_cast<uint8_t>(replacements_[start]) & 0xC0) == 0x80)
      fail("has its replacement at ", start, ", within a character");
  }
}

bool Charsmap::keeps(char ascii) const {
  if (empty()) return true;
  const std::string_view alone(&ascii, 1);
  const Match match = longest(alone);
  if (match.length > 0 && match.replacement != alone) return false;
  const size_t place = offset_of(units_[0]) ^ static_cast<uint8_t>(ascii);
  if (place >= units_.size() || label_of(units_[place]) != static_cast<uint8_t>(ascii))
    return true;  // no rule starts with it
  const size_t children = place ^ offset_of(units_[place]);
  for (size_t next = 0; next < 128; ++next) {
    const size_t child = children ^ next;
    if (child < units_.size() && label_of(units_[child]) == next) return false;
  }
  return true;
}

Charsmap::Match Charsmap::longest(std::string_view text) const {
  Match match;
  size_t place = offset_of(units_[0]);
  uint32_t value = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    place ^= byte;
    if (place >= units_.size()) break;
    const uint32_t unit = units_[place];
    if (label_of(unit) != byte) break;
    place ^= offset_of(unit);
    if (!has_value(unit)) continue;
    match.length = i + 1;
    value = units_[place] & ~kLeaf;
  }
  if (match.length > 0) match.replacement = replacements_.data() + value;
  return match;
}

}  // namespace titan::sentencepiece
