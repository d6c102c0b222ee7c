// Declared options: their names, types and limits, and how to set and read each in its struct.
// titan/options.h declares them. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// A size. In TOML an integer (bytes) or a string with a unit: "512", "64MiB", "2GB".
struct Bytes {
  int64_t count = 0;
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

/// A time span. In TOML a number (seconds) or a string with a unit: "250ms", "1.5s", "10min", "2h".
struct Duration {
  double seconds = 0;
  friend bool operator==(const Duration&, const Duration&) = default;
};

enum class OptionType {
  boolean,
  integer,
  number,
  string,
  enumeration,
  path,
  bytes,
  duration,
  list,
  table
};

/// "boolean", "integer", "number", ...
TITAN_API const char* to_string(OptionType type);

struct Schema;
struct Option;
class JobView;

namespace detail {

/// Reads and writes a member of one type. There is one instance per type, not per option. An
/// enumeration's `assign` and `read` use its integer value.
struct MemberType {
  void (*describe)(Option& option);
  void (*assign)(void* member, const Value& value);
  Value (*read)(const void* member);
};

}  // namespace detail

/// One declared option.
struct TITAN_API Option {
  struct Bound {
    double value = 0;
    bool inclusive = true;
  };

  std::string name;
  std::string help;
  OptionType type = OptionType::string;
  bool may_be_unset = false;         ///< a std::optional member; the default is null
  Value default_value;               ///< in the form that `read` returns
  std::vector<std::string> choices;  ///< the allowed words; empty: any. Of a list: for each item
  bool ignores_case = false;         ///< choices compare without case
  std::optional<Bound> lower,
      upper;  ///< numbers, bytes (in bytes), durations (in seconds); of a list: for each item
  std::shared_ptr<Option> element;  ///< of a list: the form of each item
  std::shared_ptr<Schema> table;    ///< of a table: its options
  std::string fed_by;               ///< core key that provides an unset value; empty: none
  std::function<Value(const Value& core, const JobView& job)> feed;  ///< empty: unchanged

  size_t offset = 0;                           ///< of the member in its struct, bytes
  const detail::MemberType* member = nullptr;  ///< null for an item of a list
  std::vector<int64_t> meanings;               ///< of an enumeration: the value of each choice

  /// Sets the member of `options`. Requires that problem(value) is absent.
  void assign(void* options, const Value& value) const;
  /// The member's value in the canonical form: bytes as an integer, durations in seconds, unset as
  /// null.
  Value read(const void* options) const;

  /// Why `value` is invalid for this option, as the end of a sentence that starts with the option's
  /// name ("must be > 0, got -0.1"); absent if it is valid. For a table only the type is checked,
  /// because its members' errors are reported at their own positions.
  std::optional<std::string> problem(const Value& value) const;
  /// Whether `word` unsets an option that may be unset: "None". Case matters only if the option
  /// accepts any word.
  bool means_unset(std::string_view word) const;
  /// "integer >= 1", "word, one of 'linear', 'sqrt'", "list of string": for error messages,
  /// describe and docs.
  std::string allowed() const;
};

/// The options of one struct, in the order of declaration.
struct TITAN_API Schema {
  std::vector<Option> options;
  std::type_index owner = typeid(void);   ///< the options struct; void while no option is declared
  std::shared_ptr<const void> prototype;  ///< an instance with all defaults
  std::shared_ptr<void> (*clone)(const void* options) = nullptr;

  const Option* find(std::string_view name) const;
  /// A new options struct: the defaults, then every member of the map `values`. Null unsets. Throws
  /// a config Error for an unknown name or an invalid value; the core first reports all errors with
  /// their positions.
  std::shared_ptr<void> make(const Value& values) const;
  /// Throws a config Error that names the first invalid option of the map `values`.
  void assign(void* options, const Value& values) const;
  /// All options as a map.
  Value read(const void* options) const;
};

}  // namespace titan
