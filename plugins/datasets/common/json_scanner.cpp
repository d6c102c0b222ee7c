// See json_scanner.h. Checks everything that RFC 8259 requires, UTF-8 included; copies only the
// wanted string.
#include "plugins/datasets/common/json_scanner.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "plugins/datasets/common/utf8.h"

namespace titan::datasets {
namespace {

constexpr int kMaxDepth = 64;

constexpr uint64_t every_byte(uint64_t byte) {
  return byte * 0x0101010101010101;
}

/// The high bit of each byte that ends a run of plain characters: quotes, backslashes, control
/// characters, all beyond ASCII. Exact for the lowest such byte, the only one used.
constexpr uint64_t special_bytes(uint64_t word) {
  const uint64_t quote = word ^ every_byte('"'), backslash = word ^ every_byte('\\');
  const uint64_t found = ((quote - every_byte(1)) & ~quote) |
                         ((backslash - every_byte(1)) & ~backslash) |
                         ((word - every_byte(0x20)) & ~word) | word;
  return found & every_byte(0x80);
}

bool is_beyond_ascii(char c) {
  return static_cast<unsigned char>(c) >= 0x80;
}

bool is_special(char c) {
  return static_cast<unsigned char>(c) < 0x20 || is_beyond_ascii(c) || c == '"' || c == '\\';
}

class Scanner {
 public:
  Scanner(std::string_view line, std::string_view field)
      : at_(line.data()), end_(at_ + line.size()), field_(field) {}

  bool text_of_object(std::string& text) {
    bool is_found = false;
    skip_space();
    if (!take('{')) return false;
    do {
      bool is_wanted = false;
      if (!key(&is_wanted)) return false;
      if (is_wanted) {
        text.clear();
        if (!take('"') || !string(&text)) return false;
        is_found = true;
      } else if (!value()) {
        return false;
      }
      skip_space();
    } while (take(','));
    if (!take('}')) return false;
    skip_space();
    return is_found && at_ == end_;
  }

 private:
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }
  bool is_digit() const { return at_ != end_ && *at_ >= '0' && *at_ <= '9'; }

  /// A member's name and the colon, up to its value.
  bool key(bool* is_wanted) {
    skip_space();
    if (!take('"')) return false;
    const char* const begin = at_;
    if (!string(nullptr)) return false;
    std::string_view name(begin, static_cast<size_t>(at_ - begin - 1));
    std::string unescaped;
    if (is_wanted && name.find('\\') != name.npos) {
      at_ = begin;
      string(&unescaped);
      name = unescaped;
    }
    if (is_wanted) *is_wanted = name == field_;
    skip_space();
    if (!take(':')) return false;
    skip_space();
    return true;
  }

  /// Any value; not recursive, so that no line can exhaust the stack.
  bool value() {
    uint64_t objects = 0;  // bit i: what is open at depth i is an object, not a list
    int depth = 0;
    for (;;) {
      skip_space();
      if (take('{') || take('[')) {
        const bool is_object = at_[-1] == '{';
        if (depth == kMaxDepth) return false;
        skip_space();
        if (!take(is_object ? '}' : ']')) {
          objects = is_object ? objects | uint64_t{1} << depth : objects & ~(uint64_t{1} << depth);
          ++depth;
          if (is_object && !key(nullptr)) return false;
          continue;
        }
      } else if (!scalar()) {
        return false;
      }
      for (;;) {  // after a value
        if (depth == 0) return true;
        const bool is_object = objects >> (depth - 1) & 1;
        skip_space();
        if (take(',')) {
          if (is_object && !key(nullptr)) return false;
          break;
        }
        if (!take(is_object ? '}' : ']')) return false;
        --depth;
      }
    }
  }
  bool scalar() {
    if (take('"')) return string(nullptr);
    return take("true") || take("false") || take("null") || number();
  }
  /// Of any size: its value is not used.
  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (!take('e') && !take('E')) return true;
    if (!take('+')) take('-');
    return digits();
  }
  bool digits() {
    if (!is_digit()) return false;
    while (is_digit()) ++at_;
    return true;
  }

  /// The rest of a string after its opening quote, with the closing one; appended to `text` unless
  /// null.
  bool string(std::string* text) {
    for (const char* run = at_;;) {
      skip_plain();
      if (at_ == end_) return false;
      if (is_beyond_ascii(*at_)) {
        do {
          const size_t length = utf8_length(at_, end_);
          if (length == 0) return false;
          at_ += length;
        } while (at_ != end_ && is_beyond_ascii(*at_));
        continue;
      }
      if (text) text->append(run, static_cast<size_t>(at_ - run));
      if (take('"')) return true;
      if (!take('\\') || !escape(text)) return false;
      run = at_;
    }
  }
  void skip_plain() {
    if constexpr (std::endian::native == std::endian::little) {
      while (end_ - at_ >= 8) {
        uint64_t word;
        std::memcpy(&word, at_, 8);
        if (const uint64_t found = special_bytes(word)) {
          at_ += std::countr_zero(found) / 8;
          return;
        }
        at_ += 8;
      }
    }
    while (at_ != end_ && !is_special(*at_)) ++at_;
  }
  bool escape(std::string* text) {
    if (at_ == end_) return false;
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const char name = *at_++;
    if (name == 'u') return unicode_escape(text);
    const size_t index = kNames.find(name);
    if (index == kNames.npos) return false;
    if (text) *text += kMeanings[index];
    return true;
  }
  bool unicode_escape(std::string* text) {
    const std::optional<char32_t> first = hex4();
    if (!first || (*first >= 0xDC00 && *first < 0xE000)) return false;
    char32_t code = *first;
    if (code >= 0xD800 && code < 0xDC00) {
      if (!take("\\u")) return false;
      const std::optional<char32_t> second = hex4();
      if (!second || *second < 0xDC00 || *second >= 0xE000) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (*second - 0xDC00);
    }
    if (text) append_utf8(code, *text);
    return true;
  }
  std::optional<char32_t> hex4() {
    if (end_ - at_ < 4) return {};
    char32_t code = 0;
    for (const char* const end = at_ + 4; at_ != end; ++at_) {
      const char lower = static_cast<char>(*at_ | 0x20);
      code <<= 4;
      if (*at_ >= '0' && *at_ <= '9') {
        code |= static_cast<char32_t>(*at_ - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        code |= static_cast<char32_t>(lower - 'a' + 10);
      } else {
        return {};
      }
    }
    return code;
  }

  const char* at_;
  const char* end_;
  std::string_view field_;
};

}  // namespace

bool scan_text_field(std::string_view line, std::string_view field, std::string& text) {
  return Scanner(line, field).text_of_object(text);
}

}  // namespace titan::datasets
