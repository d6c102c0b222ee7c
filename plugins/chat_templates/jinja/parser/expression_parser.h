// Parses the expressions of a template by Jinja2's grammar. Used by Parser.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "../engine/syntax.h"
#include "token_stream.h"

namespace titan::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  ExpressionPointer expression() { return conditional(); }
  ExpressionPointer without_conditional() { return logical_or(); }
  /// "a" or "a, b", up to the end of the tag or one of `end_names`.
  ExpressionPointer tuple(std::initializer_list<std::string_view> end_names = {});
  /// The same without a trailing `if`, for the head of a loop or a condition.
  ExpressionPointer plain_tuple(std::initializer_list<std::string_view> end_names = {});
  /// A target of an assignment: a name, a tuple of names, with `takes_namespace` also ns.name.
  ExpressionPointer target(std::initializer_list<std::string_view> end_names, bool takes_namespace);
  /// A chain of filters "| name(...)" around `operand`; `is_inline`: the first one without "|".
  ExpressionPointer filters(ExpressionPointer operand, bool is_inline);

  /// Number of uses of the names `caller`, `kwargs` and `varargs` so far.
  const std::array<int, 3>& special_names() const { return special_names_; }
  /// > 0: an unknown filter is an error at run time, not at compile time.
  int soft_depth = 0;

 private:
  class Nesting;

  ExpressionPointer node(ExpressionKind kind) const;
  ExpressionPointer two(ExpressionKind kind, ExpressionPointer a, ExpressionPointer b) const;
  ExpressionPointer arithmetic(Operator op, ExpressionPointer a, ExpressionPointer b) const;

  ExpressionPointer conditional();
  ExpressionPointer logical_or();
  ExpressionPointer logical_and();
  ExpressionPointer logical_not();
  ExpressionPointer comparison();
  ExpressionPointer sum();
  ExpressionPointer concatenation();
  ExpressionPointer product();
  ExpressionPointer power();
  ExpressionPointer unary(bool with_filters);
  ExpressionPointer primary();
  ExpressionPointer name();
  ExpressionPointer text_constant();
  ExpressionPointer list();
  ExpressionPointer dict();
  ExpressionPointer postfix(ExpressionPointer operand);
  ExpressionPointer postfix_and_filters(ExpressionPointer operand);
  ExpressionPointer subscript(ExpressionPointer operand);
  ExpressionPointer subscribed(ExpressionPointer operand);
  ExpressionPointer call(ExpressionPointer operand);
  ExpressionPointer test(ExpressionPointer operand);
  void arguments(Expression& into);
  template <class Parse>
  ExpressionPointer tuple_of(Parse parse, std::initializer_list<std::string_view> end_names,
                             bool may_be_empty);
  bool is_tuple_end(std::initializer_list<std::string_view> end_names) const;

  TokenStream& stream_;
  std::array<int, 3> special_names_ = {};
  int depth_ = 0;
};

}  // namespace titan::jinja
