#include "json_parts.h"

#include <optional>
#include <string>

#include <titan/error.h>

#include "../common/make_pattern.h"
#include "../common/unicode.h"

namespace titan::huggingface {

AddedToken read_added_token(const JsonView& token, int32_t id) {
  token.allow_only(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", "__type"});
  AddedToken result;
  result.id = id;
  result.content = token.at("content").text();
  if (result.content.empty()) token.fail("the content is empty");
  result.special = token.flag_or("special", false);
  result.single_word = token.flag_or("single_word", false);
  result.lstrip = token.flag_or("lstrip", false);
  result.rstrip = token.flag_or("rstrip", false);
  result.normalized = token.flag_or("normalized", !result.special);
  return result;
}

std::vector<AddedToken> read_added_tokens(const JsonView& list) {
  std::vector<AddedToken> tokens;
  for (const JsonView& item : list.items()) {
    tokens.push_back(read_added_token(item, item.at("id").id()));
  }
  return tokens;
}

std::unique_ptr<bpe::Pattern> read_pattern(const JsonView& view) {
  view.allow_only({"Regex", "String"});
  const std::optional<JsonView> regex = view.find("Regex");
  const std::optional<JsonView> literal = view.find("String");
  if (regex.has_value() == literal.has_value()) {
    view.fail("must have one of the fields 'Regex' and 'String'");
  }
  const JsonView& given = regex ? *regex : *literal;
  const std::string text = given.text();
  if (text.empty()) given.fail("the pattern is empty");
  if (literal) return bpe::make_literal_pattern(text);
  try {
    return bpe::make_regex_pattern(text, bpe::Dialect::oniguruma);
  } catch (const bpe::PatternError& error) {
    given.fail(detail::concat("the regex does not compile: ", error.what(), " at byte ",
                              error.position, " of '", text, "'"));
  }
}

std::string read_character(const JsonView& view) {
  const std::string text = view.text();
  if (text.empty() || static_cast<size_t>(bpe::decode_utf8(text.data()).length) != text.size()) {
    view.fail("must be one character, got \"" + text + "\"");
  }
  return text;
}

}  // namespace titan::huggingface
