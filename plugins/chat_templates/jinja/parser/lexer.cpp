#include "lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "../engine/characters.h"
#include "../engine/operations.h"

namespace titan::jinja {
namespace {

/// Line ends become \n; one at the end is removed.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : owned_(normalized(source)), text_(owned_) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) read_data();
    add(TokenKind::end);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw TemplateError(what, line_); }
  bool sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool at_end() const { return at_ >= text_.size(); }

  void add(TokenKind kind, std::string text = {}, Object value = {}) {
    tokens_.push_back({kind, std::move(text), std::move(value), line_});
  }
  void advance(size_t count) {
    count = std::min(count, text_.size() - at_);
    const std::string_view passed = text_.substr(at_, count);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    if (count > 0) is_line_start_ = passed.back() == '\n';
    at_ += count;
  }
  void skip_space() {
    while (!at_end() && is_space(character_at(text_, at_).value))
      advance(character_at(text_, at_).length);
  }

  /// Reads the text up to the next tag, and the tag.
  void read_data() {
    size_t tag = at_;
    while ((tag = text_.find('{', tag)) != text_.npos &&
           (tag + 1 == text_.size() || std::string_view("{%#").find(text_[tag + 1]) == text_.npos))
      ++tag;
    if (tag == text_.npos) {
      add_data(text_.substr(at_));
      return advance(text_.size());
    }
    const char kind = text_[tag + 1];
    const char mark = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
    const bool has_mark = mark == '-' || mark == '+';
    add_data(before_tag(text_.substr(at_, tag - at_), has_mark ? mark : ' ', kind));
    advance(tag - at_);
    advance(has_mark ? 3 : 2);
    if (kind == '#') return skip_comment();
    if (kind == '%' && skips_raw()) return;
    add(kind == '{' ? TokenKind::variable_begin : TokenKind::block_begin);
    read_code(kind == '{');
  }
  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::data, std::string(text));
  }
  /// "-" removes all white space before a tag; a block or comment removes that before it on its
  /// line.
  std::string_view before_tag(std::string_view data, char mark, char kind) const {
    if (mark == '-') return strip(data, {.left = false});
    if (mark == '+' || kind == '{') return data;
    const size_t new_line = data.rfind('\n');
    if (new_line == data.npos && !is_line_start_) return data;
    const size_t begin = new_line == data.npos ? 0 : new_line + 1;
    return strip(data.substr(begin)).empty() ? data.substr(0, begin) : data;
  }
  /// Skips "%}", "-%}" or "+%}", with `close` for "%}"; false if there is none.
  bool skips_end(std::string_view close, bool trims_line) {
    const char mark = at_end() ? ' ' : text_[at_];
    const bool has_mark = mark == '-' || (mark == '+' && trims_line);
    if (!text_.substr(at_ + (has_mark ? 1 : 0)).starts_with(close)) return false;
    size_t length = close.size() + (has_mark ? 1 : 0);
    if (mark != '-') {
      if (!has_mark && trims_line && text_.substr(at_ + length).starts_with('\n')) ++length;
      advance(length);
      return true;
    }
    while (at_ + length < text_.size()) {
      const Character c = character_at(text_, at_ + length);
      if (!is_space(c.value)) break;
      length += c.length;
    }
    advance(length);
    return true;
  }
  void skip_comment() {
    while (!skips_end("#}", true)) {
      if (at_end()) fail("Missing end of comment tag");
      advance(1);
    }
  }
  /// {% raw %} ... {% endraw %}: data without tags. Called after "{%".
  bool skips_raw() {
    const size_t at = at_;
    const int line = line_;
    const bool is_line_start = is_line_start_;
    skip_space();
    bool is_raw = sees("raw");
    if (is_raw) {
      advance(3);
      skip_space();
      is_raw = skips_end("%}", false);
    }
    if (!is_raw) {
      at_ = at, line_ = line, is_line_start_ = is_line_start;
      return false;
    }
    const size_t begin = at_;
    for (size_t tag = begin; (tag = text_.find("{%", tag)) != text_.npos; ++tag) {
      size_t name = tag + 2;
      const char mark =
          name < text_.size() && (text_[name] == '-' || text_[name] == '+') ? text_[name++] : ' ';
      const std::string_view rest = strip(text_.substr(name), {.right = false});
      if (!rest.starts_with("endraw")) continue;
      const std::string_view data = before_tag(text_.substr(begin, tag - begin), mark, '%');
      advance(text_.size() - at_ - rest.size() + 6);
      skip_space();
      if (!skips_end("%}", true)) continue;
      add_data(data);
      return true;
    }
    fail("Missing end of raw directive");
  }

  /// Reads the tokens up to the tag's end.
  void read_code(bool is_variable) {
    brackets_.clear();
    while (true) {
      if (brackets_.empty() && skips_end(is_variable ? "}}" : "%}", !is_variable))
        return add(is_variable ? TokenKind::variable_end : TokenKind::block_end);
      if (at_end()) return;
      const Character c = character_at(text_, at_);
      if (is_space(c.value))
        advance(c.length);
      else if (is_digit(c.value) && c.value < 0x80)
        read_number();
      else if (is_word(c.value))
        read_name();
      else if (c.value == '"' || c.value == '\'')
        read_string(text_[at_]);
      else
        read_sign();
    }
  }
  void read_name() {
    size_t end = at_;
    while (end < text_.size() && is_word(character_at(text_, end).value))
      end += character_at(text_, end).length;
    add(TokenKind::name, std::string(text_.substr(at_, end - at_)));
    advance(end - at_);
  }
  void read_number() {
    size_t end = at_;
    bool is_float = false;
    const auto digits = [&](size_t i) {
      while (i < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[i])) ||
                                  (text_[i] == '_' && i > end && i + 1 < text_.size() &&
                                   std::isdigit(static_cast<unsigned char>(text_[i + 1])))))
        ++i;
      return i;
    };
    const auto is_digit_at = [&](size_t i) {
      return i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i]));
    };
    int64_t base = 10;
    if (text_[at_] == '0' && at_ + 1 < text_.size()) {
      const char letter = static_cast<char>(text_[at_ + 1] | 32);
      base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    }
    if (base != 10) {
      end = at_ + 2;
      while (end < text_.size() &&
             (std::isxdigit(static_cast<unsigned char>(text_[end])) || text_[end] == '_'))
        ++end;
    } else {
      end = digits(at_);
      const bool is_after_dot = at_ > 0 && text_[at_ - 1] == '.';
      if (!is_after_dot && end < text_.size() && text_[end] == '.' && is_digit_at(end + 1)) {
        is_float = true;
        end = digits(end + 1);
      }
      if (!is_after_dot && end < text_.size() && (text_[end] | 32) == 'e') {
        const size_t sign =
            end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-');
        if (is_digit_at(end + 1 + sign)) {
          is_float = true;
          end = digits(end + 1 + sign);
        }
      }
    }
    const std::string_view written = text_.substr(at_, end - at_);
    std::optional<Object> value;
    if (is_float) {
      if (const auto number = parsed_float(written)) value = *number;
    } else {
      try {
        value = parsed_int(written, base);
      } catch (const TemplateError& e) {
        fail(e.what());
      }
    }
    if (!value) fail("invalid number '" + std::string(written) + "'");
    add(TokenKind::constant, std::string(written), *value);
    advance(end - at_);
  }
  void read_string(char quote) {
    std::string value;
    size_t i = at_ + 1;
    for (; i < text_.size() && text_[i] != quote; ++i) {
      if (text_[i] != '\\') {
        value += text_[i];
        continue;
      }
      if (++i >= text_.size()) break;
      i = read_escape(i, value);
    }
    if (i >= text_.size()) fail("unexpected char " + std::string(1, quote));
    add(TokenKind::constant, "a string", value);
    advance(i + 1 - at_);
  }
  /// `i`: after the backslash. Returns the index of the escape's last character.
  size_t read_escape(size_t i, std::string& value) {
    static constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeant = "\\'\"\a\b\f\n\r\t\v";
    const char letter = text_[i];
    if (const size_t known = kLetters.find(letter); known != kLetters.npos) {
      value += kMeant[known];
      return i;
    }
    if (letter == '\n') return i;
    if (letter >= '0' && letter <= '7') {
      size_t end = i;
      while (end < std::min(i + 3, text_.size()) && text_[end] >= '0' && text_[end] <= '7') ++end;
      append_character(value, code(i, end - i, 8));
      return end - 1;
    }
    const size_t length = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (length > 0) {
      char32_t c = code(i + 1, length, 16);
      size_t end = i + length;
      if (c >= 0xD800 && c < 0xDC00 && text_.substr(end + 1).starts_with("\\u")) {
        const char32_t low = code(end + 3, 4, 16);
        if (low >= 0xDC00 && low < 0xE000) {
          c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
          end += 6;
        }
      }
      append_character(value, c >= 0xD800 && c < 0xE000 ? U'\uFFFD' : c);
      return end;
    }
    if (letter == 'N') fail("\\N{...} in a string is not supported");
    value += '\\';
    value += letter;
    return i;
  }
  char32_t code(size_t begin, size_t length, int base) const {
    uint32_t value = 0;
    const std::string_view digits = text_.substr(std::min(begin, text_.size()), length);
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (digits.size() < length || end.ptr != digits.data() + digits.size() || value > 0x10FFFF)
      fail("a string ends in the middle of an escape, or has a wrong one");
    return value;
  }
  void read_sign() {
    static constexpr std::string_view kSigns[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                  "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                  ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view sign : kSigns) {
      if (!sees(sign)) continue;
      const char c = sign[0];
      if (c == '(' || c == '[' || c == '{') brackets_ += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (brackets_.empty()) fail("unexpected '" + std::string(sign) + "'");
        if (brackets_.back() != c)
          fail("unexpected '" + std::string(sign) + "', expected '" + brackets_.back() + "'");
        brackets_.pop_back();
      }
      add(TokenKind::sign, std::string(sign));
      return advance(sign.size());
    }
    fail("unexpected char " + std::string(text_.substr(at_, character_at(text_, at_).length)));
  }

  const std::string owned_;
  const std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool is_line_start_ = true;
  std::string brackets_;  // the closing ones of the open brackets
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace titan::jinja
