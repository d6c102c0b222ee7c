#include "pattern.h"

#include <titan/error.h>

#include "regex_translate.h"
#include "scanner.h"
#include "unicode.h"

namespace titan::huggingface {
namespace {

class RegexPattern final : public Pattern {
 public:
  explicit RegexPattern(const std::string& pattern) : regex_(pattern) {}

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

std::unique_ptr<Pattern> make_pcre2_pattern(const std::string& pattern) {
  return std::make_unique<RegexPattern>(pattern);
}

std::unique_ptr<Pattern> make_regex_pattern(const std::string& pattern) {
  if (std::unique_ptr<Pattern> scanner = make_scanner(pattern)) return scanner;
  return make_pcre2_pattern(pattern);
}

std::unique_ptr<Pattern> make_literal_pattern(std::string text) {
  TITAN_ASSERT(!text.empty(), "a literal pattern is empty");
  return std::make_unique<LiteralPattern>(std::move(text));
}

std::unique_ptr<Pattern> read_pattern(const JsonView& view) {
  view.allow_only({"Regex", "String"});
  const std::optional<JsonView> regex = view.find("Regex");
  const std::optional<JsonView> literal = view.find("String");
  if (regex.has_value() == literal.has_value()) {
    view.fail("must have one of the fields 'Regex' and 'String'");
  }
  const JsonView& given = regex ? *regex : *literal;
  const std::string text = given.text();
  if (text.empty()) given.fail("the pattern is empty");
  if (literal) return make_literal_pattern(text);
  try {
    return make_regex_pattern(text);
  } catch (const PatternError& error) {
    given.fail(detail::concat("the regex does not compile: ", error.what(), " at byte ",
                              error.position, " of '", text, "'"));
  }
}

}  // namespace titan::huggingface
