// Syntax tree of a template: expressions and statements. Built by the parser, executed by the
// renderer; immutable after parsing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "object.h"
#include "operations.h"

namespace titan::jinja {

struct Expression;
struct Statement;
using ExpressionPointer = std::unique_ptr<Expression>;
using Statements = std::vector<std::unique_ptr<Statement>>;

enum class ExpressionKind {
  constant,
  name,
  list,
  tuple,
  dict,       ///< keys and values in turn
  attribute,  ///< operand . text
  item,       ///< operand [ operand ]
  slice,      ///< operand [ start : stop : step ], each may be null
  call,
  filter,
  test,
  logical_and,
  logical_or,
  logical_not,
  negate,
  positive,
  arithmetic,
  concatenate,
  compare,              ///< operands with `comparisons` between them
  conditional,          ///< then, condition, otherwise (may be null)
  namespace_attribute,  ///< text . attribute, only as a target of set
};

enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Expression {
  ExpressionKind kind;
  int line;
  Object constant;
  std::string text;  ///< a name: of a variable, an attribute, a filter, a test
  std::string attribute;
  Operator op = Operator::add;
  std::vector<Comparison> comparisons;
  std::vector<ExpressionPointer> operands;
  // arguments of calls, filters and tests, in addition to operands[0]
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  ExpressionPointer star, star_star;
};

enum class StatementKind {
  data,
  output,
  conditional,
  loop,
  set,
  set_block,
  macro,
  call_block,
  filter_block,
  with,
  scope,  ///< {% generation %}: its body, in a scope of its own
  break_loop,
  continue_loop
};

struct Parameter {
  std::string name;
  ExpressionPointer otherwise;  ///< null: none
};

struct Branch {
  ExpressionPointer condition;  ///< null: else
  Statements body;
};

struct Statement {
  StatementKind kind;
  int line;
  std::string text;                            ///< data, or the macro's name
  std::vector<ExpressionPointer> expressions;  ///< printed, iterated, assigned or called
  std::vector<ExpressionPointer> targets;
  ExpressionPointer condition;  ///< of a loop
  bool is_recursive = false;
  std::vector<Parameter> parameters;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;  ///< of a macro
  std::vector<Branch> branches;
  Statements body, otherwise;
};

}  // namespace titan::jinja
