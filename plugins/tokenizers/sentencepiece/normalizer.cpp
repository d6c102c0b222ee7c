#include "normalizer.h"

#include "../common/unicode.h"

namespace titan::sentencepiece {
namespace {

bool is_followed_by_ascii(std::string_view text, size_t place) {
  return place + 1 == text.size() || static_cast<uint8_t>(text[place + 1]) < 0x80;
}

}  // namespace

Normalizer::Normalizer(const NormalizerSpec& spec, bool whitespace_as_suffix,
                       const PieceTrie& user_defined, const std::string& file)
    : user_defined_(user_defined),
      charsmap_(spec, file),
      space_(spec.escape_whitespaces ? "\xE2\x96\x81" : " "),
      remove_extra_(spec.remove_extra_whitespaces),
      dummy_in_front_(spec.add_dummy_prefix && !whitespace_as_suffix),
      dummy_behind_(spec.add_dummy_prefix && whitespace_as_suffix) {
  for (size_t byte = 0; byte < plain_.size(); ++byte)
    plain_[byte] = !user_defined_.begins(static_cast<uint8_t>(byte)) &&
                   (byte < 128 ? charsmap_.keeps(static_cast<char>(byte)) : charsmap_.empty());
  plain_blank_ = std::exchange(plain_[' '], false);
}

void Normalizer::apply(std::string_view text, std::string& out) const {
  out.clear();
  while (remove_extra_ && !text.empty()) {
    const auto [part, used] = prefix(text);
    if (part != " ") break;
    text.remove_prefix(used);
  }
  if (text.empty()) return;
  if (dummy_in_front_) out += space_;
  bool after_space = remove_extra_;
  while (!text.empty()) {
    if (const size_t run = plain_run(text); run > 0) {
      out += text.substr(0, run);
      text.remove_prefix(run);
      after_space = false;
      continue;
    }
    if (text[0] == ' ' && plain_blank_ && (charsmap_.empty() || is_followed_by_ascii(text, 0))) {
      if (!after_space) out += space_;
      text.remove_prefix(1);
      after_space = remove_extra_;
      continue;
    }
    auto [part, used] = prefix(text);
    text.remove_prefix(used);
    while (after_space && part.starts_with(' ')) part.remove_prefix(1);
    if (part.empty()) continue;
    after_space = remove_extra_ && part.ends_with(' ');
    for (size_t blank; (blank = part.find(' ')) != std::string_view::npos;) {
      out.append(part.substr(0, blank)).append(space_);
      part.remove_prefix(blank + 1);
    }
    out += part;
  }
  while (remove_extra_ && out.ends_with(space_)) out.resize(out.size() - space_.size());
  if (dummy_behind_) out += space_;
}

// Number of bytes at the start that stay unchanged.
size_t Normalizer::plain_run(std::string_view text) const {
  size_t run = 0;
  while (run < text.size() && plain_[static_cast<uint8_t>(text[run])]) ++run;
  if (run == 0 || charsmap_.empty() || is_followed_by_ascii(text, run - 1)) return run;
  return run - 1;  // may start a longer rule
}

// The replacement of the next part of the text, and the part's length in bytes.
std::pair<std::string_view, size_t> Normalizer::prefix(std::string_view text) const {
  if (const size_t length = user_defined_.longest(text).first; length > 0)
    return {text.substr(0, length), length};
  if (!charsmap_.empty()) {
    const Charsmap::Match match = charsmap_.longest(text);
    if (match.length > 0) return {match.replacement, match.length};
    // after a rule that matched a part of a character
    if ((static_cast<uint8_t>(text[0]) & 0xC0) == 0x80) return {"\xEF\xBF\xBD", 1};
  }
  const auto length = static_cast<size_t>(bpe::decode_utf8(text.data()).length);
  return {text.substr(0, length), length};
}

}  // namespace titan::sentencepiece
