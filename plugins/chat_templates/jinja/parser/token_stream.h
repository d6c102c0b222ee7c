// The tokens of a template in order, with Jinja2's error messages. Used by Parser and
// ExpressionParser.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lexer.h"

namespace titan::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& behind() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  bool is(TokenKind kind) const { return now().kind == kind; }
  bool is_sign(std::string_view sign) const {
    return now().kind == TokenKind::sign && now().text == sign;
  }
  bool is_name(std::string_view name) const {
    return now().kind == TokenKind::name && now().text == name;
  }
  bool is_any_name(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names)
      if (is_name(name)) return true;
    return false;
  }
  bool skips_sign(std::string_view sign) {
    const bool found = is_sign(sign);
    if (found) next();
    return found;
  }
  bool skips_name(std::string_view name) {
    const bool found = is_name(name);
    if (found) next();
    return found;
  }
  void expect_sign(std::string_view sign) {
    if (!skips_sign(sign)) fail("expected '" + std::string(sign) + "', got " + shown());
  }
  void expect_name(std::string_view name) {
    if (!skips_name(name)) fail("expected '" + std::string(name) + "', got " + shown());
  }
  void expect(TokenKind kind, const char* what) {
    if (!is(kind)) fail(std::string("expected ") + what + ", got " + shown());
    next();
  }
  std::string any_name() {
    if (!is(TokenKind::name)) fail("expected a name, got " + shown());
    return next().text;
  }

  [[noreturn]] void fail(const std::string& what) const { throw TemplateError(what, now().line); }
  /// The current token, for messages.
  std::string shown() const {
    switch (now().kind) {
      case TokenKind::end:
        return "the end of the template";
      case TokenKind::block_end:
        return "the end of the block";
      case TokenKind::variable_end:
        return "the end of the print statement";
      case TokenKind::data:
        return "text";
      default:
        return "'" + now().text + "'";
    }
  }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace titan::jinja
