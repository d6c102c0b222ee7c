#include "renderer.h"

#include <algorithm>

#include "builtins.h"
#include "python_text.h"

namespace titan::jinja {
namespace {

constexpr size_t kLongest = size_t{1} << 30;

ScopePointer inside_of(const ScopePointer& outer) {
  auto scope = std::make_shared<Scope>();
  scope->outer = outer;
  return scope;
}

}  // namespace

const Object* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer.get())
    for (const auto& [known, value] : scope->names)
      if (known == name) return &value;
  return nullptr;
}

void Scope::set(const std::string& name, Object value) {
  for (auto& [known, old] : names)
    if (known == name) {
      old = std::move(value);
      return;
    }
  names.emplace_back(name, std::move(value));
}

Renderer::~Renderer() {
  for (const ScopePointer& scope : kept_scopes_) scope->names.clear();
  for (const Object& owner : set_namespaces_) owner.mapping()->items.clear();
}

void Renderer::run(const Statements& statements, const ScopePointer& scope, std::string& out) {
  run_all(statements, scope, out);
}

Renderer::Next Renderer::run_all(const Statements& statements, const ScopePointer& scope,
                                 std::string& out) {
  for (const auto& statement : statements) {
    runtime_.count_step();
    try {
      if (const Next next = run_one(*statement, scope, out); next != Next::statement) return next;
    } catch (TemplateError& error) {
      if (error.line == 0) error.line = statement->line;
      throw;
    }
    if (out.size() > kLongest) raise("the text has grown beyond 1 GiB");
  }
  return Next::statement;
}

std::string Renderer::text_of(const Statements& body, const ScopePointer& scope) {
  std::string text;
  run_all(body, scope, text);
  return text;
}

Renderer::Next Renderer::run_one(const Statement& statement, const ScopePointer& scope,
                                 std::string& out) {
  switch (statement.kind) {
    case StatementKind::data:
      out += statement.text;
      break;
    case StatementKind::output: {
      const Object value = value_of(*statement.expressions[0], scope);
      if (const std::string* text = value.text())
        out += *text;
      else
        out += str_of(value);
      break;
    }
    case StatementKind::conditional:
      return run_conditional(statement, scope, out);
    case StatementKind::loop:
      return run_loop(statement, scope, out);
    case StatementKind::set:
      run_set(statement, scope);
      break;
    case StatementKind::set_block: {
      const std::string text = text_of(statement.body, inside_of(scope));
      const Expression* filters = statement.expressions[0].get();
      assign(*statement.targets[0], filters ? filtered(*filters, scope, &text) : Object(text),
             scope);
      break;
    }
    case StatementKind::macro:
      scope->set(statement.text, macro_of(statement, scope));
      break;
    case StatementKind::call_block:
      run_call_block(statement, scope, out);
      break;
    case StatementKind::filter_block: {
      const std::string text = text_of(statement.body, inside_of(scope));
      out += str_of(filtered(*statement.expressions[0], scope, &text));
      break;
    }
    case StatementKind::with: {
      const ScopePointer inside = inside_of(scope);
      for (size_t i = 0; i < statement.targets.size(); ++i)
        assign(*statement.targets[i], value_of(*statement.expressions[i], scope), inside);
      return run_all(statement.body, inside, out);
    }
    case StatementKind::scope:
      run_all(statement.body, inside_of(scope), out);
      break;
    case StatementKind::break_loop:
      return Next::loop_end;
    case StatementKind::continue_loop:
      return Next::loop_round;
  }
  return Next::statement;
}

Renderer::Next Renderer::run_conditional(const Statement& statement, const ScopePointer& scope,
                                         std::string& out) {
  for (const Branch& branch : statement.branches)
    if (!branch.condition || is_true(value_of(*branch.condition, scope)))
      return run_all(branch.body, scope, out);
  return Next::statement;
}

Renderer::Next Renderer::run_loop(const Statement& statement, const ScopePointer& scope,
                                  std::string& out) {
  return loop_over(statement, value_of(*statement.expressions[0], scope), scope, 0, out);
}

Renderer::Next Renderer::loop_over(const Statement& statement, const Object& iterable,
                                   const ScopePointer& scope, int64_t depth0, std::string& out) {
  const Runtime::Depth depth(runtime_);
  std::vector<Object> items = items_of(iterable);
  if (statement.condition)
    std::erase_if(items, [&](const Object& item) {
      const ScopePointer inside = inside_of(scope);
      assign(*statement.targets[0], item, inside);
      return !is_true(value_of(*statement.condition, inside));
    });
  auto loop = std::make_shared<Loop>();
  loop->items = std::move(items);
  loop->depth0 = depth0;
  if (statement.is_recursive) {
    kept_scopes_.push_back(scope);
    loop->recurse = std::make_shared<Function>(
        Function{"loop", [this, &statement, scope, depth0](Runtime&, Arguments arguments) {
                   if (arguments.positional.size() != 1) raise("loop() takes one argument");
                   std::string text;
                   loop_over(statement, arguments.positional[0], scope, depth0 + 1, text);
                   return Object(text);
                 }});
  }
  for (; static_cast<size_t>(loop->index0) < loop->items.size(); ++loop->index0) {
    const ScopePointer inside = inside_of(scope);
    inside->set("loop", loop);
    assign(*statement.targets[0], loop->items[static_cast<size_t>(loop->index0)], inside);
    if (run_all(statement.body, inside, out) == Next::loop_end) break;
  }
  if (loop->items.empty()) return run_all(statement.otherwise, inside_of(scope), out);
  return Next::statement;
}

void Renderer::run_set(const Statement& statement, const ScopePointer& scope) {
  assign(*statement.targets[0], value_of(*statement.expressions[0], scope), scope);
}

void Renderer::assign(const Expression& target, const Object& value, const ScopePointer& scope) {
  if (target.kind == ExpressionKind::name) {
    scope->set(target.text, value);
  } else if (target.kind == ExpressionKind::namespace_attribute) {
    const Object owner = named(target.text, *scope);
    if (!owner.mapping() || owner.dict()) raise("cannot assign attribute on non-namespace object");
    if (target.attribute.starts_with('_'))
      raise("Chat templates cannot store underscore-prefixed attributes on a namespace");
    if (!owner.mapping()->find(std::string_view(target.attribute)))
      set_namespaces_.push_back(owner);
    if (value.mapping() || value.function()) set_namespaces_.push_back(owner);
    owner.mapping()->set(target.attribute, value);
  } else {
    const std::vector<Object> items = items_of(value);
    if (items.size() > target.operands.size())
      raise("too many values to unpack (expected " + std::to_string(target.operands.size()) + ")");
    if (items.size() < target.operands.size())
      raise("not enough values to unpack (expected " + std::to_string(target.operands.size()) +
            ", got " + std::to_string(items.size()) + ")");
    for (size_t i = 0; i < items.size(); ++i) assign(*target.operands[i], items[i], scope);
  }
}

Object Renderer::macro_of(const Statement& statement, const ScopePointer& scope) {
  kept_scopes_.push_back(scope);
  return Object::function(statement.text,
                          [this, &statement, scope](Runtime&, Arguments arguments) -> Object {
                            return call_macro(statement, scope, std::move(arguments));
                          });
}

std::string Renderer::call_macro(const Statement& macro, const ScopePointer& scope,
                                 Arguments arguments) {
  const ScopePointer inside = inside_of(scope);
  const auto take_named = [&](const std::string& name) -> std::optional<Object> {
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& pair) { return pair.first == name; });
    if (found == arguments.named.end()) return std::nullopt;
    Object value = std::move(found->second);
    arguments.named.erase(found);
    return value;
  };
  const size_t count = macro.parameters.size();
  bool has_own_caller = false;
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    has_own_caller = has_own_caller || parameter.name == "caller";
    std::optional<Object> value;
    if (i < arguments.positional.size())
      value = arguments.positional[i];
    else
      value = take_named(parameter.name);
    if (!value && parameter.otherwise) value = value_of(*parameter.otherwise, inside);
    inside->set(
        parameter.name,
        value ? *value : Object::undefined("parameter '" + parameter.name + "' was not provided"));
  }
  if (macro.uses_caller && !has_own_caller) {
    const std::optional<Object> caller = take_named("caller");
    inside->set("caller", caller ? *caller : Object::undefined("No caller defined"));
  }
  if (macro.uses_kwargs) {
    auto rest = std::make_shared<Mapping>();
    for (auto& [name, value] : arguments.named) rest->set(name, std::move(value));
    inside->set("kwargs", rest);
  } else if (!arguments.named.empty()) {
    raise("macro '" + macro.text + "' takes no keyword argument '" + arguments.named[0].first +
          "'");
  }
  if (macro.uses_varargs) {
    const size_t from = std::min(count, arguments.positional.size());
    inside->set("varargs", Object::tuple({arguments.positional.begin() + static_cast<long>(from),
                                          arguments.positional.end()}));
  } else if (arguments.positional.size() > count) {
    raise("macro '" + macro.text + "' takes not more than " + std::to_string(count) +
          " argument(s)");
  }
  return text_of(macro.body, inside);
}

void Renderer::run_call_block(const Statement& statement, const ScopePointer& scope,
                              std::string& out) {
  const Expression& call = *statement.expressions[0];
  const Object function = value_of(*call.operands[0], scope);
  Arguments arguments = arguments_of(call, scope);
  arguments.named.emplace_back("caller", macro_of(statement, scope));
  out += str_of(runtime_.call(function, std::move(arguments)));
}

}  // namespace titan::jinja
