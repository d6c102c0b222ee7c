#include "make_pattern.h"

#include <optional>
#include <utility>

#include <titan/error.h>

#include "regex.h"
#include "scanner.h"
#include "unicode.h"

namespace titan::bpe {
namespace {

class RegexPattern final : public Pattern {
 public:
  RegexPattern(const std::string& pattern, Dialect dialect) : regex_(pattern, dialect) {}

  void find_all(std::string_view text, RegexScratch& scratch, MatchSink& sink) const override {
    size_t from = 0;
    size_t last_end = std::string_view::npos;
    while (from <= text.size()) {
      const std::optional<Match> match = regex_.search(text, from, scratch);
      if (!match) return;
      if (match->begin == match->end && match->end == last_end) {
        if (from == text.size()) return;
        from += static_cast<size_t>(decode_utf8(text.data() + from).length);
        continue;
      }
      sink.match(match->begin, match->end);
      from = last_end = match->end;
    }
  }

 private:
  Regex regex_;
};

class LiteralPattern final : public Pattern {
 public:
  explicit LiteralPattern(std::string text) : text_(std::move(text)) {}

  void find_all(std::string_view text, RegexScratch&, MatchSink& sink) const override {
    for (size_t at = text.find(text_); at != std::string_view::npos;
         at = text.find(text_, at + text_.size())) {
      sink.match(at, at + text_.size());
    }
  }

 private:
  std::string text_;
};

}  // namespace

std::unique_ptr<Pattern> make_pcre2_pattern(const std::string& pattern, Dialect dialect) {
  return std::make_unique<RegexPattern>(pattern, dialect);
}

std::unique_ptr<Pattern> make_regex_pattern(const std::string& pattern, Dialect dialect) {
  if (std::unique_ptr<Pattern> scanner = make_scanner(pattern, dialect)) return scanner;
  return make_pcre2_pattern(pattern, dialect);
}

std::unique_ptr<Pattern> make_literal_pattern(std::string text) {
  TITAN_ASSERT(!text.empty(), "a literal pattern is empty");
  return std::make_unique<LiteralPattern>(std::move(text));
}

}  // namespace titan::bpe
