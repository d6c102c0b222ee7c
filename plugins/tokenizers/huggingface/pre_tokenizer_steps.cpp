#include "pre_tokenizer_steps.h"

#include <algorithm>
#include <utility>

#include "../common/scan_steps.h"
#include "../common/unicode.h"
#include "byte_level.h"

namespace titan::huggingface {
namespace {

// Joins and drops parts according to the behavior as they arrive; holds back at most one part.
// A part is "hit" if it matches the pattern, or, with invert, if it does not.
class SplitSink final : public bpe::MatchSink {
 public:
  SplitSink(const Piece& piece, SplitBehavior behavior, bool invert, PieceSink& sink)
      : piece_(piece), behavior_(behavior), invert_(invert), sink_(sink) {}

  void match(size_t begin, size_t end) override {
    if (begin != at_) part(at_, begin, invert_);
    part(begin, end, !invert_);
    at_ = end;
  }
  void finish() {
    if (at_ != piece_.text.size()) part(at_, piece_.text.size(), invert_);
    flush();
  }

 private:
  void part(size_t begin, size_t end, bool hit) {
    switch (behavior_) {
      case SplitBehavior::removed:
        if (!hit) give(begin, end);
        return;
      case SplitBehavior::isolated:
        give(begin, end);
        return;
      case SplitBehavior::contiguous:
        join_if(hit == held_hit_, begin, end);
        break;
      case SplitBehavior::merged_with_previous:
        join_if(hit && !held_hit_, begin, end);
        break;
      case SplitBehavior::merged_with_next:
        join_if(!hit && held_hit_, begin, end);
        break;
    }
    held_hit_ = hit;
  }
  // The held part, if any, ends where this one begins.
  void join_if(bool join, size_t begin, size_t end) {
    if (!join || held_begin_ == held_end_) {
      flush();
      held_begin_ = begin;
    }
    held_end_ = end;
  }
  void flush() {
    give(held_begin_, held_end_);
    held_begin_ = held_end_;
  }
  void give(size_t begin, size_t end) {
    if (begin == end) return;
    sink_.piece({piece_.text.substr(begin, end - begin), piece_.starts_input && begin == 0});
  }

  const Piece& piece_;
  SplitBehavior behavior_;
  bool invert_;
  PieceSink& sink_;
  size_t at_ = 0;
  size_t held_begin_ = 0;
  size_t held_end_ = 0;
  bool held_hit_ = false;
};

class SplitStep final : public PreTokenizerStep {
 public:
  SplitStep(std::unique_ptr<bpe::Pattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(const Piece& piece, StepScratch scratch, PieceSink& sink) const override {
    SplitSink parts(piece, behavior_, invert_, sink);
    pattern_->find_all(piece.text, scratch.regex, parts);
    parts.finish();
  }

 private:
  std::unique_ptr<bpe::Pattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class PrefixSpaceStep final : public PreTokenizerStep {
 public:
  void split(const Piece& piece, StepScratch scratch, PieceSink& sink) const override {
    if (piece.text.starts_with(' ')) return sink.piece(piece);
    scratch.text.assign(1, ' ').append(piece.text);
    sink.piece({scratch.text, piece.starts_input});
  }
};

class MetaspaceStep final : public PreTokenizerStep {
 public:
  MetaspaceStep(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}

  void split(const Piece& piece, StepScratch scratch, PieceSink& sink) const override {
    std::string& text = scratch.text;
    text.clear();
    const bool has_mark = piece.text.starts_with(' ') || piece.text.starts_with(replacement_);
    const bool prepends =
        scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && piece.starts_input);
    if (prepends && !has_mark) text += replacement_;
    replace_spaces(piece.text, text);
    if (!split_) return sink.piece({text, piece.starts_input});
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(replacement_, begin + 1), text.size());
      sink.piece(
          {std::string_view(text).substr(begin, end - begin), piece.starts_input && begin == 0});
      begin = end;
    }
  }

 private:
  void replace_spaces(std::string_view from, std::string& text) const {
    size_t copied = 0;
    for (size_t at = from.find(' '); at != std::string_view::npos; at = from.find(' ', copied)) {
      text.append(from.substr(copied, at - copied)).append(replacement_);
      copied = at + 1;
    }
    text.append(from.substr(copied));
  }

  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

// Maps parts of the spelling, which arrive in order, to their bytes.
class SpelledSink final : public PieceSink {
 public:
  SpelledSink(std::string_view bytes, std::string_view spelled, PieceSink& sink)
      : bytes_(bytes), spelled_(spelled), sink_(sink) {}

  void piece(const Piece& part) override {
    const auto begin = static_cast<size_t>(part.text.data() - spelled_.data());
    const size_t first = byte_ + num_characters(spelled_.substr(at_, begin - at_));
    const size_t count = num_characters(part.text);
    at_ = begin + part.text.size();
    byte_ = first + count;
    sink_.piece({bytes_.substr(first, count), part.starts_input});
  }

 private:
  static size_t num_characters(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
  }

  std::string_view bytes_, spelled_;
  PieceSink& sink_;
  size_t at_ = 0;    // position in spelled_
  size_t byte_ = 0;  // position in bytes_
};

class AlphabetStep final : public PreTokenizerStep {
 public:
  explicit AlphabetStep(std::unique_ptr<PreTokenizerStep> step) : step_(std::move(step)) {}

  void split(const Piece& piece, StepScratch scratch, PieceSink& sink) const override {
    std::string& spelled = scratch.text;
    spelled.clear();
    for (char byte : piece.text) spelled += token_of_byte(static_cast<uint8_t>(byte));
    SpelledSink parts(piece.text, spelled, sink);
    step_->split({spelled, piece.starts_input}, scratch, parts);
  }

 private:
  std::unique_ptr<PreTokenizerStep> step_;
};

// A rule returns the end of the match that begins at p, or null if there is none.
template <class Rule>
class CharacterPattern final : public bpe::Pattern {
 public:
  void find_all(std::string_view text, bpe::RegexScratch&, bpe::MatchSink& sink) const override {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    for (const char* p = begin; p < end;) {
      const char* const next = Rule::match(p, end);
      if (!next) {
        p += bpe::decode_utf8(p).length;
        continue;
      }
      sink.match(static_cast<size_t>(p - begin), static_cast<size_t>(next - begin));
      p = next;
    }
  }
};

struct WordOrSign {
  enum class Kind { word, sign, space };
  static Kind kind(char32_t c) {
    return bpe::is_word(c) ? Kind::word : bpe::is_white_space(c) ? Kind::space : Kind::sign;
  }
  static const char* match(const char* p, const char* end) {
    const bpe::CodePoint first = bpe::decode_utf8(p);
    const Kind wanted = kind(first.value);
    if (wanted == Kind::space) return nullptr;
    for (p += first.length; p < end;) {
      const bpe::CodePoint c = bpe::decode_utf8(p);
      if (kind(c.value) != wanted) break;
      p += c.length;
    }
    return p;
  }
};

template <uint16_t kMask>
struct OneOf {
  static const char* match(const char* p, const char* end) {
    const bpe::ScannedChar c = bpe::char_at(p, end);
    return c.is(kMask) || (kMask == bpe::kPunctuation && c.length == 1 && c.is(bpe::kSymbol))
               ? p + c.length
               : nullptr;
  }
};

}  // namespace

std::unique_ptr<PreTokenizerStep> make_split_step(std::unique_ptr<bpe::Pattern> pattern,
                                                  SplitBehavior behavior, bool invert) {
  return std::make_unique<SplitStep>(std::move(pattern), behavior, invert);
}

std::unique_ptr<PreTokenizerStep> make_prefix_space_step() {
  return std::make_unique<PrefixSpaceStep>();
}

std::unique_ptr<PreTokenizerStep> make_metaspace_step(std::string replacement, PrependScheme scheme,
                                                      bool split) {
  return std::make_unique<MetaspaceStep>(std::move(replacement), scheme, split);
}

std::unique_ptr<PreTokenizerStep> make_alphabet_step(std::unique_ptr<PreTokenizerStep> step) {
  return std::make_unique<AlphabetStep>(std::move(step));
}

std::unique_ptr<bpe::Pattern> make_word_or_sign_pattern() {
  return std::make_unique<CharacterPattern<WordOrSign>>();
}

std::unique_ptr<bpe::Pattern> make_white_space_pattern() {
  return std::make_unique<CharacterPattern<OneOf<bpe::kWhiteSpace>>>();
}

std::unique_ptr<bpe::Pattern> make_punctuation_pattern() {
  return std::make_unique<CharacterPattern<OneOf<bpe::kPunctuation>>>();
}

}  // namespace titan::huggingface
