// What options are once they are declared: names, types, limits, and how each is set and read in
// its struct. titan/options.h declares them. No torch.
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

/// How a member of one type is read and written; there is one for each type, not one for each
/// option. An enumeration's `assign` and `read` take its integer.
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
  bool may_be_unset = false;         ///< a std::optional member; its default is null
  Value default_value;               ///< as `read` gives it
  std::vector<std::string> choices;  ///< the allowed words; empty = any. On a list: of each item
  bool ignores_case = false;         ///< choices compare without case
  std::optional<Bound> lower,
      upper;  ///< numbers, bytes (in bytes), durations (in seconds); on a list: of each item
  std::shared_ptr<Option> element;  ///< of a list: what each item is
  std::shared_ptr<Schema> table;    ///< of a table: its options
  std::string fed_by;               ///< the core's key that it follows from; empty: none
  std::function<Value(const Value& core, const JobView& job)> feed;  ///< empty: as it is there

  size_t offset = 0;                           ///< of the member in its struct, bytes
  const detail::MemberType* member = nullptr;  ///< null of an item of a list
  std::vector<int64_t> meanings;               ///< of an enumeration: what each choice stands for

  /// Sets the member of `options` from a value that `problem` finds nothing wrong with.
  void assign(void* options, const Value& value) const;
  /// The member's value in the canonical form: bytes as an integer, durations in seconds, unset as
  /// null.
  Value read(const void* options) const;

  /// What is wrong with `value` for this option, as the end of a sentence that starts with the
  /// option's name
  /// ("must be > 0, got -0.1"); absent when nothing is. Of a table it checks the type only: its
  /// members have places of their own to be reported at.
  std::optional<std::string> problem(const Value& value) const;
  /// Whether `word` stands for no value of an option that may be unset: "None", in any case unless
  /// the option takes every word.
  bool means_unset(std::string_view word) const;
  /// "integer >= 1", "one of 'linear', 'sqrt', 'cosine'", "list of string": for error messages,
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
  /// A new options struct: the defaults, then every member of the map `values`. Null values unset.
  /// An unknown name or an unfit value throws a config Error (the core reports all of them, with
  /// places, before it comes here).
  std::shared_ptr<void> make(const Value& values) const;
  /// Throws a config Error naming the first option that `values` (a map) has wrong.
  void assign(void* options, const Value& values) const;
  /// All options as a map.
  Value read(const void* options) const;
};

}  // namespace titan
