#include "expression_parser.h"

namespace titan::jinja {
namespace {

constexpr int kDeepestExpression = 150;

}  // namespace

/// Limits nesting, so that an untrusted template cannot exhaust the stack.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : depth_(parser.depth_) {
    if (++depth_ > kDeepestExpression) parser.stream_.fail("the expression is nested too deeply");
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;

 private:
  int& depth_;
};

ExpressionPointer ExpressionParser::node(ExpressionKind kind) const {
  auto result = std::make_unique<Expression>();
  result->kind = kind;
  result->line = stream_.now().line;
  return result;
}

ExpressionPointer ExpressionParser::two(ExpressionKind kind, ExpressionPointer a,
                                        ExpressionPointer b) const {
  auto result = node(kind);
  result->line = a->line;
  result->operands.push_back(std::move(a));
  result->operands.push_back(std::move(b));
  return result;
}

ExpressionPointer ExpressionParser::arithmetic(Operator op, ExpressionPointer a,
                                               ExpressionPointer b) const {
  auto result = two(ExpressionKind::arithmetic, std::move(a), std::move(b));
  result->op = op;
  return result;
}

bool ExpressionParser::is_tuple_end(std::initializer_list<std::string_view> end_names) const {
  return stream_.is(TokenKind::variable_end) || stream_.is(TokenKind::block_end) ||
         stream_.is_sign(")") || stream_.is_any_name(end_names);
}

template <class Parse>
ExpressionPointer ExpressionParser::tuple_of(Parse parse,
                                             std::initializer_list<std::string_view> end_names,
                                             bool may_be_empty) {
  auto result = node(ExpressionKind::tuple);
  bool is_tuple = false;
  while (true) {
    if (!result->operands.empty()) stream_.expect_sign(",");
    if (is_tuple_end(end_names)) break;
    result->operands.push_back(parse());
    if (!stream_.is_sign(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return result;
  if (!result->operands.empty()) return std::move(result->operands[0]);
  if (!may_be_empty) stream_.fail("expected an expression, got " + stream_.shown());
  return result;
}

ExpressionPointer ExpressionParser::tuple(std::initializer_list<std::string_view> end_names) {
  return tuple_of([&] { return expression(); }, end_names, false);
}

ExpressionPointer ExpressionParser::plain_tuple(std::initializer_list<std::string_view> end_names) {
  return tuple_of([&] { return without_conditional(); }, end_names, false);
}

ExpressionPointer ExpressionParser::target(std::initializer_list<std::string_view> end_names,
                                           bool takes_namespace) {
  const auto one = [&]() -> ExpressionPointer {
    if (takes_namespace && stream_.is(TokenKind::name) &&
        stream_.behind().kind == TokenKind::sign && stream_.behind().text == ".") {
      auto result = node(ExpressionKind::namespace_attribute);
      result->text = stream_.next().text;
      stream_.next();
      result->attribute = stream_.any_name();
      return result;
    }
    return primary();
  };
  ExpressionPointer result = tuple_of(one, end_names, false);
  const auto check = [&](const auto& self, const Expression& part) -> void {
    if (part.kind == ExpressionKind::tuple) {
      for (const auto& inner : part.operands) self(self, *inner);
    } else if (part.kind != ExpressionKind::name &&
               part.kind != ExpressionKind::namespace_attribute) {
      throw TemplateError("cannot assign to an expression that is not a name", part.line);
    }
  };
  check(check, *result);
  return result;
}

ExpressionPointer ExpressionParser::conditional() {
  const Nesting nesting(*this);
  ExpressionPointer then = logical_or();
  while (stream_.skips_name("if")) {
    auto result = node(ExpressionKind::conditional);
    ++soft_depth;
    ExpressionPointer condition = logical_or();
    ExpressionPointer otherwise = stream_.skips_name("else") ? conditional() : nullptr;
    --soft_depth;
    result->operands.push_back(std::move(then));
    result->operands.push_back(std::move(condition));
    result->operands.push_back(std::move(otherwise));
    then = std::move(result);
  }
  return then;
}

ExpressionPointer ExpressionParser::logical_or() {
  ExpressionPointer left = logical_and();
  while (stream_.skips_name("or"))
    left = two(ExpressionKind::logical_or, std::move(left), logical_and());
  return left;
}

ExpressionPointer ExpressionParser::logical_and() {
  ExpressionPointer left = logical_not();
  while (stream_.skips_name("and"))
    left = two(ExpressionKind::logical_and, std::move(left), logical_not());
  return left;
}

ExpressionPointer ExpressionParser::logical_not() {
  if (!stream_.is_name("not")) return comparison();
  const Nesting nesting(*this);
  auto result = node(ExpressionKind::logical_not);
  stream_.next();
  result->operands.push_back(logical_not());
  return result;
}

ExpressionPointer ExpressionParser::comparison() {
  static constexpr std::pair<std::string_view, Comparison> kSigns[] = {
      {"==", Comparison::equal},  {"!=", Comparison::not_equal},
      {"<", Comparison::less},    {"<=", Comparison::less_equal},
      {">", Comparison::greater}, {">=", Comparison::greater_equal}};
  ExpressionPointer first = sum();
  auto result = node(ExpressionKind::compare);
  while (true) {
    bool found = false;
    for (const auto& [sign, comparison] : kSigns)
      if (!found && stream_.skips_sign(sign)) {
        result->comparisons.push_back(comparison);
        found = true;
      }
    if (!found && stream_.skips_name("in")) {
      result->comparisons.push_back(Comparison::in);
      found = true;
    }
    if (!found && stream_.is_name("not") && stream_.behind().kind == TokenKind::name &&
        stream_.behind().text == "in") {
      stream_.next();
      stream_.next();
      result->comparisons.push_back(Comparison::not_in);
      found = true;
    }
    if (!found) break;
    if (result->operands.empty()) result->operands.push_back(std::move(first));
    result->operands.push_back(sum());
  }
  return result->operands.empty() ? std::move(first) : std::move(result);
}

ExpressionPointer ExpressionParser::sum() {
  ExpressionPointer left = concatenation();
  while (true) {
    if (stream_.skips_sign("+"))
      left = arithmetic(Operator::add, std::move(left), concatenation());
    else if (stream_.skips_sign("-"))
      left = arithmetic(Operator::subtract, std::move(left), concatenation());
    else
      return left;
  }
}

ExpressionPointer ExpressionParser::concatenation() {
  ExpressionPointer first = product();
  if (!stream_.is_sign("~")) return first;
  auto result = node(ExpressionKind::concatenate);
  result->operands.push_back(std::move(first));
  while (stream_.skips_sign("~")) result->operands.push_back(product());
  return result;
}

ExpressionPointer ExpressionParser::product() {
  static constexpr std::pair<std::string_view, Operator> kSigns[] = {{"*", Operator::multiply},
                                                                     {"/", Operator::divide},
                                                                     {"//", Operator::floor_divide},
                                                                     {"%", Operator::modulo}};
  ExpressionPointer left = power();
  for (bool found = true; found;) {
    found = false;
    for (const auto& [sign, op] : kSigns)
      if (!found && stream_.skips_sign(sign)) {
        left = arithmetic(op, std::move(left), power());
        found = true;
      }
  }
  return left;
}

ExpressionPointer ExpressionParser::power() {
  ExpressionPointer left = unary(true);
  while (stream_.skips_sign("**")) left = arithmetic(Operator::power, std::move(left), unary(true));
  return left;
}

ExpressionPointer ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(*this);
  ExpressionPointer result;
  if (stream_.is_sign("-") || stream_.is_sign("+")) {
    result = node(stream_.is_sign("-") ? ExpressionKind::negate : ExpressionKind::positive);
    stream_.next();
    result->operands.push_back(unary(false));
  } else {
    result = primary();
  }
  result = postfix(std::move(result));
  return with_filters ? postfix_and_filters(std::move(result)) : std::move(result);
}

ExpressionPointer ExpressionParser::primary() {
  const Nesting nesting(*this);
  if (stream_.is(TokenKind::name)) return name();
  if (stream_.is(TokenKind::constant)) return text_constant();
  if (stream_.skips_sign("(")) {
    auto result = tuple_of([&] { return expression(); }, {}, true);
    stream_.expect_sign(")");
    return result;
  }
  if (stream_.is_sign("[")) return list();
  if (stream_.is_sign("{")) return dict();
  stream_.fail("unexpected " + stream_.shown());
}

ExpressionPointer ExpressionParser::name() {
  auto result = node(ExpressionKind::constant);
  const std::string word = stream_.next().text;
  if (word == "true" || word == "True" || word == "false" || word == "False") {
    result->constant = word[0] == 't' || word[0] == 'T';
  } else if (word != "none" && word != "None") {
    result->kind = ExpressionKind::name;
    result->text = word;
    special_names_[0] += word == "caller";
    special_names_[1] += word == "kwargs";
    special_names_[2] += word == "varargs";
  }
  return result;
}

/// Adjacent strings are concatenated.
ExpressionPointer ExpressionParser::text_constant() {
  auto result = node(ExpressionKind::constant);
  result->constant = stream_.next().value;
  while (result->constant.is_text() && stream_.is(TokenKind::constant) &&
         stream_.now().value.is_text())
    result->constant = *result->constant.text() + *stream_.next().value.text();
  return result;
}

ExpressionPointer ExpressionParser::list() {
  auto result = node(ExpressionKind::list);
  stream_.expect_sign("[");
  while (!stream_.is_sign("]")) {
    if (!result->operands.empty()) stream_.expect_sign(",");
    if (stream_.is_sign("]")) break;
    result->operands.push_back(expression());
  }
  stream_.expect_sign("]");
  return result;
}

ExpressionPointer ExpressionParser::dict() {
  auto result = node(ExpressionKind::dict);
  stream_.expect_sign("{");
  while (!stream_.is_sign("}")) {
    if (!result->operands.empty()) stream_.expect_sign(",");
    if (stream_.is_sign("}")) break;
    result->operands.push_back(expression());
    stream_.expect_sign(":");
    result->operands.push_back(expression());
  }
  stream_.expect_sign("}");
  return result;
}

ExpressionPointer ExpressionParser::postfix(ExpressionPointer operand) {
  while (true) {
    if (stream_.is_sign(".") || stream_.is_sign("["))
      operand = subscript(std::move(operand));
    else if (stream_.is_sign("("))
      operand = call(std::move(operand));
    else
      return operand;
  }
}

ExpressionPointer ExpressionParser::postfix_and_filters(ExpressionPointer operand) {
  while (true) {
    if (stream_.is_sign("|"))
      operand = filters(std::move(operand), false);
    else if (stream_.is_name("is"))
      operand = test(std::move(operand));
    else if (stream_.is_sign("("))  // calls the result of a filter or a test
      operand = call(std::move(operand));
    else
      return operand;
  }
}

ExpressionPointer ExpressionParser::subscript(ExpressionPointer operand) {
  if (!stream_.skips_sign(".")) {
    stream_.expect_sign("[");
    ExpressionPointer result = subscribed(std::move(operand));
    stream_.expect_sign("]");
    return result;
  }
  if (stream_.is(TokenKind::name)) {
    auto result = node(ExpressionKind::attribute);
    result->text = stream_.next().text;
    result->operands.push_back(std::move(operand));
    return result;
  }
  if (!stream_.is(TokenKind::constant) || !stream_.now().value.is_integer())
    stream_.fail("expected a name or a number, got " + stream_.shown());
  return two(ExpressionKind::item, std::move(operand), text_constant());
}

ExpressionPointer ExpressionParser::subscribed(ExpressionPointer operand) {
  ExpressionPointer start = stream_.is_sign(":") ? nullptr : expression();
  if (stream_.is_sign(",")) {
    auto keys = node(ExpressionKind::tuple);
    keys->operands.push_back(std::move(start));
    while (stream_.skips_sign(",")) keys->operands.push_back(expression());
    start = std::move(keys);
  }
  if (!stream_.skips_sign(":"))
    return two(ExpressionKind::item, std::move(operand), std::move(start));
  auto result = node(ExpressionKind::slice);
  result->operands.push_back(std::move(operand));
  result->operands.push_back(std::move(start));
  const auto bound = [&]() -> ExpressionPointer {
    return stream_.is_sign(":") || stream_.is_sign("]") ? nullptr : expression();
  };
  result->operands.push_back(bound());
  result->operands.push_back(stream_.skips_sign(":") ? bound() : nullptr);
  return result;
}

ExpressionPointer ExpressionParser::call(ExpressionPointer operand) {
  auto result = node(ExpressionKind::call);
  result->operands.push_back(std::move(operand));
  arguments(*result);
  return result;
}

}  // namespace titan::jinja
