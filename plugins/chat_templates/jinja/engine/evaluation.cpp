// The part of Renderer that evaluates expressions.
#include <algorithm>

#include "builtins.h"
#include "python_text.h"
#include "renderer.h"

namespace titan::jinja {

Object Renderer::value_of(const Expression& expression, const ScopePointer& scope) {
  try {
    return computed(expression, scope);
  } catch (TemplateError& error) {
    if (error.line == 0) error.line = expression.line;
    throw;
  }
}

Object Renderer::named(const std::string& name, const Scope& scope) const {
  if (const Object* found = scope.find(name)) return *found;
  if (auto global = global_of(name)) return *std::move(global);
  return Object::undefined("'" + name + "' is undefined");
}

Object Renderer::computed(const Expression& expression, const ScopePointer& scope) {
  const auto operand = [&](size_t i) { return value_of(*expression.operands[i], scope); };
  switch (expression.kind) {
    case ExpressionKind::constant:
      return expression.constant;
    case ExpressionKind::name:
      return named(expression.text, *scope);
    case ExpressionKind::list:
    case ExpressionKind::tuple: {
      std::vector<Object> items;
      for (size_t i = 0; i < expression.operands.size(); ++i) items.push_back(operand(i));
      return Object::sequence(std::move(items), expression.kind == ExpressionKind::list
                                                    ? SequenceKind::list
                                                    : SequenceKind::tuple);
    }
    case ExpressionKind::dict: {
      auto dict = std::make_shared<Mapping>();
      for (size_t i = 0; i < expression.operands.size(); i += 2) {
        const Object key = operand(i);
        dict->set(key, operand(i + 1));
      }
      return dict;
    }
    case ExpressionKind::attribute:
      return attribute_of(operand(0), expression.text);
    case ExpressionKind::item: {
      const Object object = operand(0);
      return item_of(object, operand(1));
    }
    case ExpressionKind::slice:
      return slice(expression, scope);
    case ExpressionKind::call: {
      const Object function = operand(0);
      return runtime_.call(function, arguments_of(expression, scope));
    }
    case ExpressionKind::filter:
      return filtered(expression, scope, nullptr);
    case ExpressionKind::test: {
      const Object value = operand(0);
      return apply_test(runtime_, expression.text, value, arguments_of(expression, scope));
    }
    case ExpressionKind::logical_and: {
      const Object left = operand(0);
      return is_true(left) ? operand(1) : left;
    }
    case ExpressionKind::logical_or: {
      const Object left = operand(0);
      return is_true(left) ? left : operand(1);
    }
    case ExpressionKind::logical_not:
      return !is_true(operand(0));
    case ExpressionKind::negate:
      return negated(operand(0));
    case ExpressionKind::positive: {
      const Object value = operand(0);
      if (value.is_undefined()) raise(value.why_undefined());
      if (!value.is_number()) raise("bad operand type for unary +: '" + type_name(value) + "'");
      return value;
    }
    case ExpressionKind::arithmetic: {
      const Object left = operand(0);
      return apply(expression.op, left, operand(1));
    }
    case ExpressionKind::concatenate: {
      std::string text;
      for (size_t i = 0; i < expression.operands.size(); ++i) {
        text += str_of(operand(i));
        if (text.size() > kLongestText) raise("a text has grown beyond 256 MiB");
      }
      return text;
    }
    case ExpressionKind::compare:
      return compared(expression, scope);
    case ExpressionKind::conditional:
      if (is_true(operand(1))) return operand(0);
      if (expression.operands[2]) return operand(2);
      return Object::undefined(
          "the inline if-expression evaluated to false and no else section "
          "was defined.");
    case ExpressionKind::namespace_attribute:
      break;
  }
  raise("an attribute of a namespace can only be set");
}

Object Renderer::slice(const Expression& expression, const ScopePointer& scope) {
  const auto bound = [&](size_t i) {
    return expression.operands[i] ? value_of(*expression.operands[i], scope) : Object();
  };
  const Object object = bound(0), start = bound(1), stop = bound(2);
  return slice_of(object, start, stop, bound(3));
}

Object Renderer::compared(const Expression& expression, const ScopePointer& scope) {
  Object left = value_of(*expression.operands[0], scope);
  for (size_t i = 0; i < expression.comparisons.size(); ++i) {
    Object right = value_of(*expression.operands[i + 1], scope);
    bool holds = false;
    switch (expression.comparisons[i]) {
      case Comparison::equal:
        holds = equals(left, right);
        break;
      case Comparison::not_equal:
        holds = !equals(left, right);
        break;
      case Comparison::less:
        holds = less(left, right);
        break;
      case Comparison::less_equal:
        holds = less(left, right) || equals(left, right);
        break;
      case Comparison::greater:
        holds = less(right, left);
        break;
      case Comparison::greater_equal:
        holds = less(right, left) || equals(left, right);
        break;
      case Comparison::in:
        holds = contains(right, left);
        break;
      case Comparison::not_in:
        holds = !contains(right, left);
        break;
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Object Renderer::filtered(const Expression& expression, const ScopePointer& scope,
                          const std::string* body) {
  Object value;
  if (!expression.operands[0])
    value = *body;
  else if (expression.operands[0]->kind == ExpressionKind::filter)
    value = filtered(*expression.operands[0], scope, body);
  else
    value = value_of(*expression.operands[0], scope);
  return apply_filter(runtime_, expression.text, std::move(value), arguments_of(expression, scope));
}

Arguments Renderer::arguments_of(const Expression& expression, const ScopePointer& scope) {
  Arguments arguments;
  for (const auto& positional : expression.positional)
    arguments.positional.push_back(value_of(*positional, scope));
  for (const auto& [name, value] : expression.named)
    arguments.named.emplace_back(name, value_of(*value, scope));
  if (expression.star)
    for (Object& item : items_of(value_of(*expression.star, scope)))
      arguments.positional.push_back(std::move(item));
  if (expression.star_star) {
    const Object named = value_of(*expression.star_star, scope);
    if (!named.dict()) raise("argument after ** must be a mapping, not " + type_name(named));
    for (const auto& [key, value] : named.dict()->items) {
      if (!key.is_text()) raise("keywords must be strings");
      arguments.named.emplace_back(*key.text(), value);
    }
  }
  return arguments;
}

}  // namespace titan::jinja
