#include "parser.h"

#include <array>
#include <utility>

#include "expression_parser.h"

namespace titan::jinja {
namespace {

using Ends = std::initializer_list<std::string_view>;
constexpr int kDeepestBlock = 100;

class Parser {
 public:
  explicit Parser(std::string_view source) : stream_(tokens_of(source)), expressions_(stream_) {}

  Statements run() {
    Statements all;
    while (!stream_.is(TokenKind::end)) {
      if (auto statement = next_statement({}))
        all.push_back(std::move(statement));
      else
        fail_unknown();
    }
    return all;
  }

 private:
  using Pointer = std::unique_ptr<Statement>;

  Pointer node(StatementKind kind) const {
    auto result = std::make_unique<Statement>();
    result->kind = kind;
    result->line = stream_.now().line;
    return result;
  }
  [[noreturn]] void fail_unknown() const {
    const std::string tag = stream_.now().text;
    for (const std::string_view known :
         {"include", "import", "from", "extends", "block", "do", "trans", "autoescape"})
      if (tag == known) stream_.fail("{% " + tag + " %} is not supported in a chat template");
    stream_.fail("encountered unknown tag " + stream_.shown());
  }

  /// Null at a block whose name is one of `ends`; that name is then the current token.
  Pointer next_statement(Ends ends) {
    if (stream_.is(TokenKind::data)) {
      auto data = node(StatementKind::data);
      data->text = stream_.next().text;
      return data;
    }
    if (stream_.is(TokenKind::variable_begin)) {
      stream_.next();
      auto output = node(StatementKind::output);
      output->expressions.push_back(expressions_.tuple());
      stream_.expect(TokenKind::variable_end, "'}}'");
      return output;
    }
    stream_.expect(TokenKind::block_begin, "a block");
    if (stream_.is_any_name(ends)) return nullptr;
    Pointer result = block();
    if (result) stream_.expect(TokenKind::block_end, "the end of the block");
    return result;
  }
  /// Called after a block's head; reads up to the block that ends it, whose name is then the
  /// current token.
  Statements body(Ends ends) {
    if (++depth_ > kDeepestBlock) stream_.fail("blocks are nested too deeply");
    stream_.skips_sign(":");
    stream_.expect(TokenKind::block_end, "the end of the block");
    Statements all;
    while (true) {
      if (stream_.is(TokenKind::end))
        stream_.fail("the template ends inside a block; it lacks {% " +
                     std::string(*(ends.end() - 1)) + " %}");
      Pointer statement = next_statement(ends);
      if (!statement) {
        if (!stream_.is_any_name(ends)) fail_unknown();
        break;
      }
      all.push_back(std::move(statement));
    }
    --depth_;
    return all;
  }
  Statements body_up_to(std::string_view end) {
    Statements all = body({end});
    stream_.next();
    return all;
  }

  /// Null for an unknown tag.
  Pointer block() {
    if (!stream_.is(TokenKind::name)) stream_.fail("tag name expected, got " + stream_.shown());
    const std::string tag = stream_.now().text;
    if (tag == "if") return conditional();
    if (tag == "for") return loop();
    if (tag == "set") return set();
    if (tag == "macro") return macro();
    if (tag == "call") return call_block();
    if (tag == "filter") return filter_block();
    if (tag == "with") return with();
    if (tag == "generation") return generation();
    if (tag == "print") return print();
    if (tag == "break" || tag == "continue") {
      if (loop_depth_ == 0) stream_.fail("'" + tag + "' outside loop");
      auto result = node(tag == "break" ? StatementKind::break_loop : StatementKind::continue_loop);
      stream_.next();
      return result;
    }
    return nullptr;
  }
  Pointer print() {
    auto result = node(StatementKind::output);
    stream_.next();
    result->expressions.push_back(expressions_.tuple());
    return result;
  }
  Pointer conditional() {
    auto result = node(StatementKind::conditional);
    stream_.next();
    ++expressions_.soft_depth;
    ExpressionPointer condition = expressions_.plain_tuple();
    while (true) {
      Statements inside = body({"elif", "else", "endif"});
      result->branches.push_back({std::move(condition), std::move(inside)});
      if (stream_.skips_name("elif")) {
        condition = expressions_.plain_tuple();
      } else if (stream_.skips_name("else")) {
        result->branches.push_back({nullptr, body_up_to("endif")});
        break;
      } else {
        stream_.expect_name("endif");
        break;
      }
    }
    --expressions_.soft_depth;
    return result;
  }
  Pointer loop() {
    auto result = node(StatementKind::loop);
    stream_.next();
    result->targets.push_back(expressions_.target({"in"}, false));
    stream_.expect_name("in");
    result->expressions.push_back(expressions_.plain_tuple({"recursive"}));
    if (stream_.skips_name("if")) result->condition = expressions_.expression();
    result->is_recursive = stream_.skips_name("recursive");
    ++loop_depth_;
    const int soft_outside = std::exchange(expressions_.soft_depth, 0);
    result->body = body({"else", "endfor"});
    expressions_.soft_depth = soft_outside;
    --loop_depth_;
    if (stream_.skips_name("else"))
      result->otherwise = body_up_to("endfor");
    else
      stream_.expect_name("endfor");
    return result;
  }
  Pointer set() {
    auto result = node(StatementKind::set);
    stream_.next();
    result->targets.push_back(expressions_.target({}, true));
    if (stream_.skips_sign("=")) {
      result->expressions.push_back(expressions_.tuple());
      return result;
    }
    result->kind = StatementKind::set_block;
    result->expressions.push_back(filters_of_body());
    result->body = apart([&] { return body_up_to("endset"); });
    return result;
  }
  /// Filters whose innermost operand is null: the body's text.
  ExpressionPointer filters_of_body() {
    return stream_.is_sign("|") ? expressions_.filters(nullptr, false) : nullptr;
  }
  /// A separate function in Jinja2: break and continue do not reach loops outside of it.
  template <class Parse>
  Statements apart(Parse parse) {
    const int outside = std::exchange(loop_depth_, 0);
    const int soft_outside = std::exchange(expressions_.soft_depth, 0);
    Statements result = parse();
    loop_depth_ = outside;
    expressions_.soft_depth = soft_outside;
    return result;
  }
  void signature(Statement& into) {
    stream_.expect_sign("(");
    while (!stream_.is_sign(")")) {
      if (!into.parameters.empty()) stream_.expect_sign(",");
      Parameter& parameter = into.parameters.emplace_back();
      parameter.name = stream_.any_name();
      if (stream_.skips_sign("="))
        parameter.otherwise = expressions_.expression();
      else if (into.parameters.size() > 1 && into.parameters[into.parameters.size() - 2].otherwise)
        stream_.fail("non-default argument follows default argument");
    }
    stream_.expect_sign(")");
  }
  void macro_body(Statement& into, std::string_view end) {
    const std::array<int, 3> before = expressions_.special_names();
    into.body = apart([&] { return body_up_to(end); });
    const std::array<int, 3>& now = expressions_.special_names();
    into.uses_caller = now[0] > before[0];
    into.uses_kwargs = now[1] > before[1];
    into.uses_varargs = now[2] > before[2];
  }
  Pointer macro() {
    auto result = node(StatementKind::macro);
    stream_.next();
    result->text = stream_.any_name();
    signature(*result);
    macro_body(*result, "endmacro");
    return result;
  }
  Pointer call_block() {
    auto result = node(StatementKind::call_block);
    stream_.next();
    if (stream_.is_sign("(")) signature(*result);
    result->expressions.push_back(expressions_.expression());
    if (result->expressions[0]->kind != ExpressionKind::call) stream_.fail("expected call");
    macro_body(*result, "endcall");
    return result;
  }
  Pointer filter_block() {
    auto result = node(StatementKind::filter_block);
    stream_.next();
    result->expressions.push_back(expressions_.filters(nullptr, true));
    result->body = body_up_to("endfilter");
    return result;
  }
  Pointer with() {
    auto result = node(StatementKind::with);
    stream_.next();
    while (!stream_.is(TokenKind::block_end)) {
      if (!result->targets.empty()) stream_.expect_sign(",");
      result->targets.push_back(expressions_.target({}, false));
      stream_.expect_sign("=");
      result->expressions.push_back(expressions_.expression());
    }
    result->body = body_up_to("endwith");
    return result;
  }
  Pointer generation() {
    auto result = node(StatementKind::scope);
    stream_.next();
    result->body = apart([&] { return body_up_to("endgeneration"); });
    return result;
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  int depth_ = 0, loop_depth_ = 0;
};

}  // namespace

Statements parse(std::string_view source) {
  return Parser(source).run();
}

}  // namespace titan::jinja
