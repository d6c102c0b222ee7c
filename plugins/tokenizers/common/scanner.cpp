#include "scanner.h"

#include <cstdint>

#include "scan_steps.h"

namespace titan::bpe {
namespace {

// A rule has `static const char* match(const char* p, const char* end)`: the end of the match that
// begins at p, or null if there is none.
template <class Rule>
class Scanner final : public Pattern {
 public:
  void find_all(std::string_view text, RegexScratch&, MatchSink& sink) const override {
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) {
      const char* const next = Rule::match(p, end);
      if (!next) {
        p += utf8_length(*p);
        continue;
      }
      sink.match(static_cast<size_t>(p - text.data()), static_cast<size_t>(next - text.data()));
      p = next;
    }
  }
};

const char* skip_newlines(const char* p, const char* end) {
  while (p < end && (*p == '\r' || *p == '\n')) ++p;
  return p;
}

struct Gpt2 {
  static const char* match(const char* p, const char* end) {
    if (*p == '\'') {
      if (const char* after = skip_contraction<false>(p, end)) return after;
    }
    const ScannedChar first = char_at(p, end);
    const char* const second = p + first.length;
    if (!first.is(kWhiteSpace)) return skip(second, end, run_of(first));
    if (*p == ' ') {
      const ScannedChar c = char_at(second, end);
      if (c.kind != 0 && !c.is(kWhiteSpace)) return skip(second + c.length, end, run_of(c));
    }
    return skip_white_space<SpaceRule::plain>(p, end);
  }
  static uint16_t run_of(ScannedChar c) {
    return c.is(kLetter) ? kLetter : c.is(kNumber) ? kNumber : kRest;
  }
};

// Llama 3, Qwen and cl100k.
template <int kDigits, SpaceRule kSpaceRule>
struct Cl100k {
  static const char* match(const char* p, const char* end) {
    if (*p == '\'') {
      if (const char* after = skip_contraction<true>(p, end)) return after;
    }
    const ScannedChar first = char_at(p, end);
    const char* const second = p + first.length;
    if (first.is(kLetter)) return skip(second, end, kLetter);
    if (first.is(kNumber)) return skip_some(second, end, kNumber, kDigits - 1);
    const ScannedChar c = char_at(second, end);
    // [^\r\n\p{L}\p{N}]?\p{L}+
    if (c.is(kLetter) && first.kind != kNewline) return skip(second + c.length, end, kLetter);
    //  ?[^\s\p{L}\p{N}]+[\r\n]*
    if (first.is(kRest)) return skip_newlines(skip(second, end, kRest), end);
    if (*p == ' ' && c.is(kRest)) {
      return skip_newlines(skip(second + c.length, end, kRest), end);
    }
    return skip_white_space<kSpaceRule>(p, end);
  }
};

template <int kDigits, bool kContractions>
struct O200k {
  static constexpr uint16_t kUpperLike = kUpper | kCaseless | kMark;
  static constexpr uint16_t kLowerLike = kLower | kCaseless | kMark;

  static const char* match(const char* p, const char* end) {
    const ScannedChar first = char_at(p, end);
    const char* const second = p + first.length;
    if (first.is(kNumber)) return skip_some(second, end, kNumber, kDigits - 1);
    const bool may_lead = !first.is(kNewline | kLetter);  // [^\r\n\p{L}\p{N}]
    if (const char* after = word(p, second, may_lead, end)) {
      if (kContractions && after < end && *after == '\'') {
        if (const char* contracted = skip_contraction<true>(after, end)) return contracted;
      }
      return after;
    }
    //  ?[^\s\p{L}\p{N}]+[\r\n/]*
    const char* const rest = *p == ' ' ? skip(second, end, kRest) : skip(p, end, kRest);
    if (rest > (*p == ' ' ? second : p)) return skip_tail(rest, end);
    return skip_white_space<SpaceRule::newlines>(p, end);
  }

 private:
  // The first two alternatives: each first with the leading character, then without it.
  static const char* word(const char* p, const char* second, bool may_lead, const char* end) {
    if (may_lead) {
      if (const char* after = upper_then_lower(second, end)) return after;
    }
    if (const char* after = upper_then_lower(p, end)) return after;
    if (may_lead) {
      if (const char* after = skip(second, end, kUpperLike); after > second) return after;
    }
    if (const char* after = skip(p, end, kUpperLike); after > p) return after;
    return nullptr;
  }

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ or null. If no lower case follows,
  // the match ends after the run's last character of both classes.
  static const char* upper_then_lower(const char* p, const char* end) {
    const char* after_both = nullptr;
    ScannedChar c = char_at(p, end);
    for (; c.is(kUpperLike); c = char_at(p, end)) {
      p += c.length;
      if (c.is(kLowerLike)) after_both = p;
    }
    return c.is(kLower) ? skip(p + c.length, end, kLowerLike) : after_both;
  }

  static const char* skip_tail(const char* p, const char* end) {
    while (p < end && (*p == '\r' || *p == '\n' || *p == '/')) ++p;
    return p;
  }
};

template <int kDigits>
struct Digits {
  static const char* match(const char* p, const char* end) {
    const char* const after = skip_some(p, end, kNumber, kDigits);
    return after == p ? nullptr : after;
  }
};

struct Newline {
  static const char* match(const char* p, const char*) {
    return *p == '\r' || *p == '\n' ? p + 1 : nullptr;
  }
};

// \s?\p{L}+ and the like.
template <uint16_t kMask>
struct SpaceAndRun {
  static const char* match(const char* p, const char* end) {
    const ScannedChar first = char_at(p, end);
    if (!first.is(kWhiteSpace | kMask)) return nullptr;
    const char* const second = p + first.length;
    if (first.is(kMask)) return skip(second, end, kMask);
    const char* const after = skip(second, end, kMask);
    return after == second ? nullptr : after;
  }
};

struct DeepseekCjk {
  static bool is_in(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
  }
};
struct DeepseekV2Cjk {
  static bool is_in(char32_t c) {
    return (c >= 0x0800 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7FF);
  }
};

// A run of characters from U+0800 on.
template <class Set>
struct Cjk {
  static const char* match(const char* p, const char* end) {
    const char* const begin = p;
    while (p < end && static_cast<unsigned char>(*p) >= 0xE0) {
      const CodePoint c = decode_utf8(p);
      if (!Set::is_in(c.value)) break;
      p += c.length;
    }
    return p == begin ? nullptr : p;
  }
};

struct Deepseek {
  static constexpr uint16_t kSigns = kPunctuation | kSymbol;
  static constexpr uint16_t kWord = kLetter | kMark;

  static const char* match(const char* p, const char* end) {
    const ScannedChar first = char_at(p, end);
    const char* const second = p + first.length;
    if (first.is(kSigns)) {
      if (static_cast<unsigned char>(*p) < 0x80) {
        if (const char* after = skip_ascii_letters(second, end); after > second) return after;
      }
      return skip_newlines(skip(second, end, kSigns), end);
    }
    if (first.is(kLetter)) return skip(second, end, kWord);
    const ScannedChar c = char_at(second, end);
    // [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
    if (c.is(kWord) && first.kind != kNewline) return skip(second + c.length, end, kWord);
    if (first.is(kMark)) return second;
    if (*p == ' ' && c.is(kSigns)) {
      return skip_newlines(skip(second + c.length, end, kSigns), end);
    }
    return first.is(kWhiteSpace) ? skip_white_space<SpaceRule::newlines>(p, end) : nullptr;
  }

 private:
  static const char* skip_ascii_letters(const char* p, const char* end) {
    while (p < end && ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z'))) ++p;
    return p;
  }
};

template <class Rule>
std::unique_ptr<Pattern> make() {
  return std::make_unique<Scanner<Rule>>();
}

struct Known {
  std::string_view pattern;
  std::unique_ptr<Pattern> (*make)();
};
constexpr Known kKnown[] = {
    {kGpt2Pattern, make<Gpt2>},
    {kLlama3Pattern, make<Cl100k<3, SpaceRule::newlines>>},
    {kQwenPattern, make<Cl100k<1, SpaceRule::newlines>>},
    {kO200kPattern, make<O200k<3, true>>},
    {kTekkenPattern, make<O200k<1, false>>},
    {kNumberPattern, make<Digits<1>>},
    {kDeepseekDigitsPattern, make<Digits<3>>},
    {kDeepseekCjkPattern, make<Cjk<DeepseekCjk>>},
    {kDeepseekPattern, make<Deepseek>},
    {kDeepseekV2NewlinePattern, make<Newline>},
    {kDeepseekV2LetterPattern, make<SpaceAndRun<kLetter>>},
    {kDeepseekV2PunctuationPattern, make<SpaceAndRun<kPunctuation>>},
    {kDeepseekV2CjkPattern, make<Cjk<DeepseekV2Cjk>>},
};

}  // namespace

std::unique_ptr<Pattern> make_scanner(std::string_view pattern, Dialect dialect) {
  for (const Known& known : kKnown) {
    if (pattern == known.pattern) return known.make();
  }
  if (pattern == kCl100kPattern && dialect == Dialect::rust) {
    return make<Cl100k<3, SpaceRule::end_then_newlines>>();
  }
  return nullptr;
}

}  // namespace titan::bpe
