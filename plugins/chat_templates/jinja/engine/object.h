// The values of templates: the Python types that Jinja templates can see. Used by the whole engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace titan::jinja {

/// An error that Jinja2 would raise: by the template (raise_exception), a type error or a syntax
/// error. `line`: of the template, 0 if not known yet.
struct TemplateError : std::runtime_error {
  explicit TemplateError(const std::string& what, int at_line = 0)
      : std::runtime_error(what), line(at_line) {}
  int line;
};

class Object;
class Runtime;

/// A missing variable: prints as empty text, is false and has no items. Most other uses raise
/// `why`.
struct Undefined {
  std::shared_ptr<const std::string> why;
};

struct Text {
  std::shared_ptr<const std::string> utf8;
  bool is_markup = false;  ///< from the filters `safe` and `escape`: `+` escapes an operand that is
                           ///< not markup
};

enum class SequenceKind { list, tuple, generator, dict_keys, dict_values, dict_items };

struct Sequence {
  SequenceKind kind = SequenceKind::list;
  std::vector<Object> items;
};

/// Keeps the order of insertion.
struct Mapping {
  std::vector<std::pair<Object, Object>> items;
  bool is_namespace = false;

  const Object* find(const Object& key) const;
  const Object* find(std::string_view key) const;
  void set(const Object& key, Object value);
};

struct Arguments {
  std::vector<Object> positional;
  std::vector<std::pair<std::string, Object>> named;
};

struct Function {
  std::string name;
  std::function<Object(Runtime&, Arguments)> call;
};

/// The variable `loop` of a loop.
struct Loop {
  std::vector<Object> items;
  int64_t index0 = 0;
  int64_t depth0 = 0;
  std::vector<Object> changed;  ///< the last arguments of loop.changed
  bool was_asked = false;
  std::shared_ptr<Function> recurse;  ///< set in recursive loops
};

/// Regular value type; lists and mappings are shared, as in Python.
class Object {
 public:
  struct None {};
  using Data =
      std::variant<None, Undefined, bool, int64_t, double, Text, std::shared_ptr<Sequence>,
                   std::shared_ptr<Mapping>, std::shared_ptr<Function>, std::shared_ptr<Loop>>;

  Object() = default;  // None
  Object(bool value) : data_(value) {}
  Object(int64_t value) : data_(value) {}
  Object(size_t value) : data_(static_cast<int64_t>(value)) {}
  Object(double value) : data_(value) {}
  Object(const char* value) : Object(std::string(value)) {}
  Object(std::string value)
      : data_(Text{std::make_shared<const std::string>(std::move(value)), false}) {}
  Object(Text value) : data_(std::move(value)) {}
  Object(std::shared_ptr<Sequence> value) : data_(std::move(value)) {}
  Object(std::shared_ptr<Mapping> value) : data_(std::move(value)) {}
  Object(std::shared_ptr<Function> value) : data_(std::move(value)) {}
  Object(std::shared_ptr<Loop> value) : data_(std::move(value)) {}

  static Object undefined(std::string why) {
    Object result;
    result.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
    return result;
  }
  static Object sequence(std::vector<Object> items, SequenceKind kind = SequenceKind::list) {
    return std::make_shared<Sequence>(Sequence{kind, std::move(items)});
  }
  static Object tuple(std::vector<Object> items) {
    return sequence(std::move(items), SequenceKind::tuple);
  }
  static Object markup(std::string value) {
    return Text{std::make_shared<const std::string>(std::move(value)), true};
  }
  static Object function(std::string name, std::function<Object(Runtime&, Arguments)> call) {
    return std::make_shared<Function>(Function{std::move(name), std::move(call)});
  }

  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_text() const { return std::holds_alternative<Text>(data_); }
  bool is_boolean() const { return std::holds_alternative<bool>(data_); }
  /// A Python int, including True and False.
  bool is_integer() const { return is_boolean() || std::holds_alternative<int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_integer() || is_float(); }

  /// Each is null if the value has another type.
  const std::string* text() const {
    const auto* value = std::get_if<Text>(&data_);
    return value ? value->utf8.get() : nullptr;
  }
  bool is_markup() const {
    const auto* value = std::get_if<Text>(&data_);
    return value && value->is_markup;
  }
  Sequence* sequence() const { return pointer<Sequence>(); }
  Mapping* mapping() const { return pointer<Mapping>(); }  ///< a dict or a namespace
  Mapping* dict() const { return mapping() && !mapping()->is_namespace ? mapping() : nullptr; }
  Function* function() const { return pointer<Function>(); }
  Loop* loop() const { return pointer<Loop>(); }

  /// The value must be a number.
  int64_t integer() const {
    if (const bool* value = std::get_if<bool>(&data_)) return *value;
    return std::get<int64_t>(data_);
  }
  double number() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(integer());
  }
  const std::string& why_undefined() const { return *std::get<Undefined>(data_).why; }
  const Data& data() const { return data_; }

 private:
  template <class T>
  T* pointer() const {
    const auto* value = std::get_if<std::shared_ptr<T>>(&data_);
    return value ? value->get() : nullptr;
  }

  Data data_;
};

/// Python's name of its type: "str", "NoneType".
std::string type_name(const Object& object);
[[noreturn]] void raise(const std::string& what);

}  // namespace titan::jinja
