#include "scanner.h"

#include <array>
#include <cstdint>

#include "unicode.h"

namespace titan::huggingface {
namespace {

enum class Class : uint8_t { letter, number, newline, space, other, wide };  // wide: not ASCII

constexpr std::array<Class, 256> make_byte_classes() {
  std::array<Class, 256> classes{};
  for (int b = 0; b < 256; ++b) {
    Class c = Class::other;
    if (b >= 0x80) {
      c = Class::wide;
    } else if ((b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')) {
      c = Class::letter;
    } else if (b >= '0' && b <= '9') {
      c = Class::number;
    } else if (b == '\r' || b == '\n') {
      c = Class::newline;
    } else if (b == ' ' || b == '\t' || b == '\v' || b == '\f') {
      c = Class::space;
    }
    classes[static_cast<size_t>(b)] = c;
  }
  return classes;
}
constexpr std::array<Class, 256> kByteClasses = make_byte_classes();

Class wide_class(char32_t c) {
  if (is_letter(c)) return Class::letter;
  if (is_number(c)) return Class::number;
  return is_white_space(c) ? Class::space : Class::other;
}

constexpr bool is_space(Class c) {
  return c == Class::space || c == Class::newline;
}

enum class Family { gpt2, llama3, qwen };

template <Family kFamily>
class Scanner final : public Pattern {
 public:
  void find_all(std::string_view text, RegexScratch&, MatchSink& sink) const override {
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) {
      const char* const next = match_at(p, end);
      sink.match(static_cast<size_t>(p - text.data()), static_cast<size_t>(next - text.data()));
      p = next;
    }
  }

 private:
  struct Char {
    Class kind;
    int length;
  };
  static Char char_at(const char* p) {
    const Class kind = kByteClasses[static_cast<unsigned char>(*p)];
    if (kind != Class::wide) return {kind, 1};
    const CodePoint c = decode_utf8(p);
    return {wide_class(c.value), c.length};
  }
  static const char* skip(const char* p, const char* end, Class kind) {
    while (p < end) {
      const Char c = char_at(p);
      if (c.kind != kind) break;
      p += c.length;
    }
    return p;
  }
  static const char* skip_newlines(const char* p, const char* end) {
    while (p < end && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }

  // The end of the match that begins at `p`; every text has one, at least a character long.
  static const char* match_at(const char* p, const char* end) {
    if (*p == '\'') {
      if (const char* after = contraction(p, end)) return after;
    }
    const Char first = char_at(p);
    const char* const second = p + first.length;
    if (first.kind == Class::letter) return skip(second, end, Class::letter);
    if constexpr (kFamily == Family::gpt2) {
      if (!is_space(first.kind)) return skip(second, end, first.kind);
      if (*p == ' ' && second < end) {
        const Char c = char_at(second);
        if (!is_space(c.kind)) return skip(second + c.length, end, c.kind);
      }
    } else {
      if (first.kind == Class::number) return digits(second, end);
      const bool more = second < end;
      const Char c = more ? char_at(second) : Char{Class::newline, 0};
      // [^\r\n\p{L}\p{N}]?\p{L}+
      if (c.kind == Class::letter && first.kind != Class::newline) {
        return skip(second + c.length, end, Class::letter);
      }
      //  ?[^\s\p{L}\p{N}]+[\r\n]*
      if (first.kind == Class::other) {
        return skip_newlines(skip(second, end, Class::other), end);
      }
      if (*p == ' ' && c.kind == Class::other) {
        return skip_newlines(skip(second + c.length, end, Class::other), end);
      }
    }
    return white_space(p, end);
  }

  static const char* digits(const char* p, const char* end) {
    if constexpr (kFamily == Family::llama3) {
      for (int taken = 1; taken < 3 && p < end; ++taken) {
        const Char c = char_at(p);
        if (c.kind != Class::number) break;
        p += c.length;
      }
    }
    return p;
  }

  // \s*[\r\n]+ (not GPT-2), \s+(?!\S), \s+
  static const char* white_space(const char* p, const char* end) {
    const char* const begin = p;
    const char* after_newline = nullptr;
    const char* last = p;
    while (p < end) {
      const Char c = char_at(p);
      if (!is_space(c.kind)) break;
      last = p;
      p += c.length;
      if (c.kind == Class::newline) after_newline = p;
    }
    if (kFamily != Family::gpt2 && after_newline) return after_newline;
    return p == end || last == begin ? p : last;
  }

  static char fold(char c) {
    if constexpr (kFamily == Family::gpt2) return c;
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }

  // 's 't 're 've 'm 'll 'd; without regard to case but in GPT-2, where U+017F counts as an s.
  static const char* contraction(const char* p, const char* end) {
    const size_t left = static_cast<size_t>(end - p);
    if (left < 2) return nullptr;
    const char a = fold(p[1]);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if (left < 3) return nullptr;
    const char b = fold(p[2]);
    if ((b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l')) return p + 3;
    if (kFamily != Family::gpt2 && p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<Pattern> make_scanner(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return std::make_unique<Scanner<Family::gpt2>>();
  if (pattern == kLlama3Pattern) return std::make_unique<Scanner<Family::llama3>>();
  if (pattern == kQwenPattern) return std::make_unique<Scanner<Family::qwen>>();
  return nullptr;
}

}  // namespace titan::huggingface
