#include "builtins.h"

#include <algorithm>
#include <map>

#include "bound_arguments.h"
#include "characters.h"
#include "operations.h"
#include "python_text.h"

namespace titan::jinja {
namespace {

constexpr int64_t kLongestRange = 100'000;  // as in Jinja2's sandbox

using Test = bool (*)(const Object& value, const BoundArguments& arguments);
struct TestEntry {
  size_t num_arguments;
  Test test;
};

bool is_iterable(const Object& value) {
  return value.is_undefined() || value.is_text() || value.sequence() || value.dict() ||
         value.loop();
}

bool is_sized(const Object& value) {
  if (value.is_undefined() || value.is_text() || value.dict()) return true;
  const Sequence* sequence = value.sequence();
  return sequence &&
         (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple);
}

bool has_case(const Object& value, const char* method) {
  const Object text(str_of(value));
  Runtime runtime(0);
  return is_true(runtime.call(attribute_of(text, method), {}));
}

int64_t remainder(const Object& value, int64_t by) {
  return apply(Operator::modulo, value, by).is_integer()
             ? apply(Operator::modulo, value, by).integer()
             : -1;
}

const std::map<std::string_view, TestEntry>& tests() {
  using O = const Object&;
  using A = const BoundArguments&;
  static constexpr Test kEqual = [](O a, A b) { return equals(a, b[1]); };
  static constexpr Test kUnequal = [](O a, A b) { return !equals(a, b[1]); };
  static constexpr Test kLess = [](O a, A b) { return less(a, b[1]); };
  static constexpr Test kGreater = [](O a, A b) { return less(b[1], a); };
  static constexpr Test kLessEqual = [](O a, A b) { return less(a, b[1]) || equals(a, b[1]); };
  static constexpr Test kGreaterEqual = [](O a, A b) { return less(b[1], a) || equals(a, b[1]); };
  static const std::map<std::string_view, TestEntry> all = {
      {"defined", {0, [](O a, A) { return !a.is_undefined(); }}},
      {"undefined", {0, [](O a, A) { return a.is_undefined(); }}},
      {"none", {0, [](O a, A) { return a.is_none(); }}},
      {"boolean", {0, [](O a, A) { return a.is_boolean(); }}},
      {"true", {0, [](O a, A) { return a.is_boolean() && a.integer(); }}},
      {"false", {0, [](O a, A) { return a.is_boolean() && !a.integer(); }}},
      {"integer", {0, [](O a, A) { return a.is_integer() && !a.is_boolean(); }}},
      {"float", {0, [](O a, A) { return a.is_float(); }}},
      {"number", {0, [](O a, A) { return a.is_number(); }}},
      {"string", {0, [](O a, A) { return a.is_text(); }}},
      {"mapping", {0, [](O a, A) { return a.dict() != nullptr; }}},
      {"sequence", {0, [](O a, A) { return is_sized(a); }}},
      {"iterable", {0, [](O a, A) { return is_iterable(a); }}},
      {"callable", {0, [](O a, A) { return a.function() || a.loop() || a.is_undefined(); }}},
      {"sameas", {1, [](O a, A b) { return is_same(a, b[1]); }}},
      {"escaped", {0, [](O a, A) { return a.is_markup(); }}},
      {"in", {1, [](O a, A b) { return contains(b[1], a); }}},
      {"odd", {0, [](O a, A) { return remainder(a, 2) == 1; }}},
      {"even", {0, [](O a, A) { return remainder(a, 2) == 0; }}},
      {"divisibleby",
       {1, [](O a, A b) { return equals(apply(Operator::modulo, a, b[1]), int64_t{0}); }}},
      {"lower", {0, [](O a, A) { return has_case(a, "islower"); }}},
      {"upper", {0, [](O a, A) { return has_case(a, "isupper"); }}},
      {"filter", {0, [](O a, A) { return a.is_text() && has_filter(*a.text()); }}},
      {"test", {0, [](O a, A) { return a.is_text() && has_test(*a.text()); }}},
      {"==", {1, kEqual}},
      {"eq", {1, kEqual}},
      {"equalto", {1, kEqual}},
      {"!=", {1, kUnequal}},
      {"ne", {1, kUnequal}},
      {"<", {1, kLess}},
      {"lt", {1, kLess}},
      {"lessthan", {1, kLess}},
      {"<=", {1, kLessEqual}},
      {"le", {1, kLessEqual}},
      {">", {1, kGreater}},
      {"gt", {1, kGreater}},
      {"greaterthan", {1, kGreater}},
      {">=", {1, kGreaterEqual}},
      {"ge", {1, kGreaterEqual}},
  };
  return all;
}

Object range_of(Arguments arguments) {
  BoundArguments bound("range", std::move(arguments), {"start", "stop", "step"}, 1);
  const int64_t start = bound.has(1) ? bound.integer(0, 0) : 0;
  const int64_t stop = bound.integer(bound.has(1) ? 1 : 0, 0);
  const int64_t step = bound.integer(2, 1);
  if (step == 0) raise("range() arg 3 must not be zero");
  std::vector<Object> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) >= kLongestRange)
      raise("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Object::sequence(std::move(items));
}

/// dict(...) and namespace(...).
std::shared_ptr<Mapping> mapping_of(Arguments arguments, bool is_namespace) {
  auto result = std::make_shared<Mapping>();
  result->is_namespace = is_namespace;
  if (arguments.positional.size() > 1)
    raise("dict expected at most 1 argument, got " + std::to_string(arguments.positional.size()));
  for (const Object& given : arguments.positional) {
    if (given.is_undefined()) continue;
    if (const Mapping* dict = given.dict()) {
      for (const auto& [key, value] : dict->items) result->set(key, value);
      continue;
    }
    for (const Object& pair : items_of(given)) {
      const std::vector<Object> two = items_of(pair);
      if (two.size() != 2)
        raise("dictionary update sequence element has length " + std::to_string(two.size()) +
              "; 2 is required");
      result->set(two[0], two[1]);
    }
  }
  for (auto& [name, value] : arguments.named) {
    if (is_namespace && name.starts_with('_'))
      raise("Chat templates cannot store underscore-prefixed attributes on a namespace");
    result->set(name, std::move(value));
  }
  return result;
}

Object formatted_now(Runtime& runtime, Arguments arguments) {
  const BoundArguments bound("strftime_now", std::move(arguments), {"format"}, 1);
  const std::time_t now = runtime.now();
  std::tm local = {};
  ::localtime_r(&now, &local);
  const std::string format = bound.text(0) + " ";  // so that the result is never empty
  std::string buffer(format.size() * 16 + 256, '\0');
  buffer.resize(std::strftime(buffer.data(), buffer.size(), format.c_str(), &local));
  if (!buffer.empty()) buffer.pop_back();
  return buffer;
}

}  // namespace

bool has_filter(std::string_view name) {
  return sequence_filter(name) || text_filter(name);
}

bool has_test(std::string_view name) {
  return tests().contains(name);
}

Object apply_filter(Runtime& runtime, const std::string& name, Object value, Arguments arguments) {
  Filter filter = text_filter(name);
  if (!filter) filter = sequence_filter(name);
  if (!filter) raise("No filter named '" + name + "' found.");
  runtime.count_step();
  arguments.positional.insert(arguments.positional.begin(), std::move(value));
  return filter(runtime, std::move(arguments));
}

bool apply_test(Runtime& runtime, const std::string& name, Object value, Arguments arguments) {
  const auto found = tests().find(name);
  if (found == tests().end()) raise("No test named '" + name + "' found.");
  runtime.count_step();
  arguments.positional.insert(arguments.positional.begin(), value);
  const size_t num_arguments = found->second.num_arguments;
  std::vector<std::string_view> names = {"value", "other"};
  names.resize(1 + num_arguments);
  return found->second.test(value, BoundArguments(name, std::move(arguments), names, names.size()));
}

std::optional<Object> global_of(std::string_view name) {
  using Call = Object (*)(Runtime&, Arguments);
  static const std::map<std::string_view, Call> all = {
      {"range", [](Runtime&, Arguments arguments) { return range_of(std::move(arguments)); }},
      {"dict",
       [](Runtime&, Arguments arguments) -> Object {
         return mapping_of(std::move(arguments), false);
       }},
      {"namespace",
       [](Runtime&, Arguments arguments) -> Object {
         return mapping_of(std::move(arguments), true);
       }},
      {"strftime_now", formatted_now},
      {"raise_exception",
       [](Runtime&, Arguments arguments) -> Object {
         const BoundArguments bound("raise_exception", std::move(arguments), {"message"}, 1);
         raise(str_of(bound[0]));
       }},
  };
  const auto found = all.find(name);
  if (found == all.end()) return std::nullopt;
  return Object::function(std::string(name), found->second);
}

}  // namespace titan::jinja
