// The part of ExpressionParser for suffixes of an operand: arguments, filters, tests.
#include "../engine/builtins.h"
#include "expression_parser.h"

namespace titan::jinja {

void ExpressionParser::arguments(Expression& into) {
  stream_.expect_sign("(");
  for (bool is_first = true; !stream_.is_sign(")"); is_first = false) {
    if (!is_first) {
      stream_.expect_sign(",");
      if (stream_.is_sign(")")) break;
    }
    if (stream_.is_sign("*") || stream_.is_sign("**")) {
      ExpressionPointer& star = stream_.next().text == "*" ? into.star : into.star_star;
      if (star) stream_.fail("invalid syntax for function call expression");
      star = expression();
    } else if (stream_.is(TokenKind::name) && stream_.behind().kind == TokenKind::sign &&
               stream_.behind().text == "=") {
      std::string name = stream_.next().text;
      stream_.next();
      into.named.emplace_back(std::move(name), expression());
    } else {
      if (!into.named.empty() || into.star || into.star_star)
        stream_.fail("invalid syntax for function call expression");
      into.positional.push_back(expression());
    }
  }
  stream_.expect_sign(")");
}

ExpressionPointer ExpressionParser::filters(ExpressionPointer operand, bool is_inline) {
  while (is_inline || stream_.skips_sign("|")) {
    is_inline = false;
    auto result = node(ExpressionKind::filter);
    result->text = stream_.any_name();
    while (stream_.skips_sign(".")) result->text += "." + stream_.any_name();
    if (soft_depth == 0 && !has_filter(result->text))
      throw TemplateError("No filter named '" + result->text + "'.", result->line);
    result->operands.push_back(std::move(operand));
    if (stream_.is_sign("(")) arguments(*result);
    operand = std::move(result);
  }
  return operand;
}

ExpressionPointer ExpressionParser::test(ExpressionPointer operand) {
  auto result = node(ExpressionKind::test);
  stream_.next();
  const bool is_negated = stream_.skips_name("not");
  result->text = stream_.any_name();
  while (stream_.skips_sign(".")) result->text += "." + stream_.any_name();
  if (soft_depth == 0 && !has_test(result->text))
    throw TemplateError("No test named '" + result->text + "'.", result->line);
  result->operands.push_back(std::move(operand));
  const bool has_operand = stream_.is(TokenKind::name) || stream_.is(TokenKind::constant) ||
                           stream_.is_sign("[") || stream_.is_sign("{");
  if (stream_.is_sign("(")) {
    arguments(*result);
  } else if (has_operand && !stream_.is_any_name({"else", "or", "and"})) {
    if (stream_.is_name("is")) stream_.fail("you cannot chain multiple tests with 'is'");
    result->positional.push_back(postfix(primary()));
  }
  if (!is_negated) return result;
  auto negated = node(ExpressionKind::logical_not);
  negated->line = result->line;
  negated->operands.push_back(std::move(result));
  return negated;
}

}  // namespace titan::jinja
