// A small JSON-like value: null, bool, int64, double, string, list, map. Options, state and
// metadata travel as Value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <titan/export.h>

namespace titan {

/// A regular value type. A map keeps the order of insertion, so that printed configurations keep
/// the order in which they were written.
class TITAN_API Value {
 public:
  using List = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Map = std::vector<Member>;
  enum class Type { null, boolean, integer, number, string, list, map };

  Value() = default;
  Value(bool value) : data_(value) {}
  Value(int value) : data_(int64_t{value}) {}
  Value(int64_t value) : data_(value) {}
  Value(uint64_t) = delete;  // ambiguous above 2^63: cast by hand
  Value(double value) : data_(value) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(List value) : data_(std::move(value)) {}
  Value(Map value) : data_(std::move(value)) {}

  /// `Value::map({{"dim", 256}, {"n_layers", 6}})`
  static Value map(std::initializer_list<Member> members = {}) { return Value(Map(members)); }
  static Value list(std::initializer_list<Value> items = {}) { return Value(List(items)); }

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is_null() const { return type() == Type::null; }
  bool is_map() const { return type() == Type::map; }
  bool is_list() const { return type() == Type::list; }
  bool is_string() const { return type() == Type::string; }
  bool is_integer() const { return type() == Type::integer; }
  bool is_number() const { return type() == Type::number; }
  bool is_boolean() const { return type() == Type::boolean; }

  /// Throw an internal Error naming both types if the value has another type. `as_number` also
  /// accepts integers.
  bool as_boolean() const;
  int64_t as_integer() const;
  double as_number() const;
  const std::string& as_string() const&;
  const List& as_list() const&;
  List& as_list() &;
  const Map& as_map() const&;
  Map& as_map() &;
  /// On a temporary these return the content by value, so that `for (... :
  /// parse_json(text).as_list())` is safe.
  std::string as_string() &&;
  List as_list() &&;
  Map as_map() &&;

  /// Map member by name; null pointer if absent or if this is not a map.
  const Value* find(std::string_view name) const;
  Value* find(std::string_view name);
  /// Map member by name; throws a data Error naming the member if absent.
  const Value& at(std::string_view name) const;
  /// Map member by name, appended as null if absent. Turns a null value into an empty map.
  Value& operator[](std::string_view name);

  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> data_;
};

/// "null", "boolean", "integer", "number", "string", "list", "map"
TITAN_API const char* to_string(Value::Type type);

/// Compact JSON (indent < 0) or indented. Numbers are printed in the shortest form that reads back
/// equal; NaN and infinities are printed as null.
TITAN_API std::string to_json(const Value& value, int indent = -1);
/// Throws a data Error with line and column of the first error.
TITAN_API Value parse_json(std::string_view text);

}  // namespace titan
