// Splits a template into tokens, with Jinja2's rules for white space around blocks (trim_blocks and
// lstrip_blocks on, as in transformers). Used by the parser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../engine/object.h"

namespace titan::jinja {

enum class TokenKind {
  data,
  block_begin,
  block_end,
  variable_begin,
  variable_end,
  name,
  constant,  ///< a string or a number, in `value`
  sign,      ///< an operator or a bracket, in `text`
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  Object value;
  int line = 1;
};

/// The last token is `end`. Throws a TemplateError with its line.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace titan::jinja
