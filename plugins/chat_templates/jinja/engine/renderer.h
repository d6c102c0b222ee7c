// Executes the statements of a template. Used by Template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime.h"
#include "syntax.h"

namespace titan::jinja {

/// Names and values of a scope; other names are looked up in `outer`. Macros keep the scopes around
/// them alive.
struct Scope {
  std::shared_ptr<Scope> outer;
  std::vector<std::pair<std::string, Object>> names;

  const Object* find(const std::string& name) const;
  void set(const std::string& name, Object value);
};
using ScopePointer = std::shared_ptr<Scope>;

/// For one rendering. Throws a TemplateError with its line.
class Renderer {
 public:
  explicit Renderer(Runtime& runtime) : runtime_(runtime) {}
  /// Breaks the reference cycles of macros and namespaces.
  ~Renderer();
  Renderer(const Renderer&) = delete;

  void run(const Statements& statements, const ScopePointer& scope, std::string& out);

 private:
  enum class Next { statement, loop_end, loop_round };

  Next run_all(const Statements& statements, const ScopePointer& scope, std::string& out);
  Next run_one(const Statement& statement, const ScopePointer& scope, std::string& out);
  Next run_conditional(const Statement& statement, const ScopePointer& scope, std::string& out);
  Next run_loop(const Statement& statement, const ScopePointer& scope, std::string& out);
  Next loop_over(const Statement& statement, const Object& iterable, const ScopePointer& scope,
                 int64_t depth0, std::string& out);
  void run_set(const Statement& statement, const ScopePointer& scope);
  void run_call_block(const Statement& statement, const ScopePointer& scope, std::string& out);
  std::string text_of(const Statements& body, const ScopePointer& scope);
  void assign(const Expression& target, const Object& value, const ScopePointer& scope);

  Object macro_of(const Statement& statement, const ScopePointer& scope);
  std::string call_macro(const Statement& macro, const ScopePointer& scope, Arguments arguments);

  Object value_of(const Expression& expression, const ScopePointer& scope);
  Object computed(const Expression& expression, const ScopePointer& scope);
  Object named(const std::string& name, const Scope& scope) const;
  Object slice(const Expression& expression, const ScopePointer& scope);
  Object compared(const Expression& expression, const ScopePointer& scope);
  /// `body`: the missing innermost operand of a filter block.
  Object filtered(const Expression& expression, const ScopePointer& scope, const std::string* body);
  Arguments arguments_of(const Expression& expression, const ScopePointer& scope);

  Runtime& runtime_;
  std::vector<ScopePointer> kept_scopes_;  // kept by macros and recursive loops
  std::vector<Object> set_namespaces_;
};

}  // namespace titan::jinja
