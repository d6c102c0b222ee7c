#include <titan/generation/text_stream.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace titan {
namespace {

/// U+FFFD, which decoding writes for an incomplete character.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The length of the longest suffix of `text` that is a proper prefix of `word`.
size_t begun(std::string_view text, std::string_view word) {
  for (size_t length = std::min(text.size(), word.size() - 1); length > 0; --length)
    if (text.ends_with(word.substr(0, length))) return length;
  return 0;
}

}  // namespace

/// The decoded text that was not returned yet. A token's text depends on those before it: blanks,
/// bytes of one character.
std::string TextStream::not_given() const {
  const std::span<const int32_t> recent(ids_.begin() + static_cast<std::ptrdiff_t>(context_),
                                        ids_.end());
  const std::string known = tokenizer_.decode(recent.first(decoded_ - context_));
  const std::string all = tokenizer_.decode(recent);
  return all.size() > known.size() ? all.substr(known.size()) : "";
}

std::string TextStream::add(int32_t id) {
  if (has_stopped_ || id >= tokenizer_.vocab_size()) return "";
  ids_.push_back(id);
  const std::string more = not_given();
  if (more.empty() || more.ends_with(kReplacement)) return "";
  context_ = decoded_;
  decoded_ = ids_.size();
  return give(more, /*is_end=*/false);
}

std::string TextStream::finish() {
  return has_stopped_ ? "" : give(not_given(), /*is_end=*/true);
}

std::string TextStream::give(const std::string& more, bool is_end) {
  held_ += more;
  size_t first = std::string::npos, held = 0;
  for (const std::string& word : stop_) {
    first = std::min(first, held_.find(word));
    if (!is_end) held = std::max(held, begun(held_, word));
  }
  has_stopped_ = first != std::string::npos;
  const std::string out = held_.substr(0, has_stopped_ ? first : held_.size() - held);
  held_.erase(0, out.size());
  text_ += out;
  return out;
}

}  // namespace titan
