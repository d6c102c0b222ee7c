// Typed option schemas: a plugin (or a section of the core) declares each option once, by pointing
// at a member of its options struct. TOML checking, command-line flags, `titan describe`, the docs
// and the resolved configuration all come from that one declaration. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <titan/error.h>
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
class JobView;

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

  /// Sets the member of `options` from a value that `problem` finds nothing wrong with.
  std::function<void(void* options, const Value& value)> assign;
  /// The member's value in the canonical form: bytes as an integer, durations in seconds, unset as
  /// null.
  std::function<Value(const void* options)> read;

  /// What is wrong with `value` for this option, as the end of a sentence that starts with the
  /// option's name
  /// ("must be > 0, got -0.1"); absent when nothing is. Of a table it checks the type only: its
  /// members have places of their own to be reported at.
  std::optional<std::string> problem(const Value& value) const;
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

namespace detail {

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

TITAN_API int64_t parse_bytes(const Value& value);
TITAN_API double parse_duration(const Value& value);

/// Conversion between Value and the types that an option may have.
template <class T>
OptionType option_type() {
  if constexpr (std::is_same_v<T, bool>)
    return OptionType::boolean;
  else if constexpr (std::is_same_v<T, int64_t>)
    return OptionType::integer;
  else if constexpr (std::is_same_v<T, double>)
    return OptionType::number;
  else if constexpr (std::is_same_v<T, std::string>)
    return OptionType::string;
  else if constexpr (std::is_same_v<T, std::filesystem::path>)
    return OptionType::path;
  else if constexpr (std::is_same_v<T, Bytes>)
    return OptionType::bytes;
  else if constexpr (std::is_same_v<T, Duration>)
    return OptionType::duration;
  else if constexpr (is_vector<T>::value)
    return OptionType::list;
  else
    static_assert(
        sizeof(T) == 0,
        "an option is bool, int64_t, double, std::string, std::filesystem::path, titan::Bytes, "
        "titan::Duration, an enum (with its names), a std::vector or a std::optional of those");
}

template <class T>
T from_value(const Value& value) {
  if constexpr (is_optional<T>::value) {
    if (value.is_null()) return std::nullopt;
    return from_value<typename T::value_type>(value);
  } else if constexpr (is_vector<T>::value) {
    T items;
    for (const Value& item : value.as_list())
      items.push_back(from_value<typename T::value_type>(item));
    return items;
  } else if constexpr (std::is_same_v<T, bool>)
    return value.as_boolean();
  else if constexpr (std::is_same_v<T, int64_t>)
    return value.as_integer();
  else if constexpr (std::is_same_v<T, double>)
    return value.as_number();
  else if constexpr (std::is_same_v<T, Bytes>)
    return Bytes{parse_bytes(value)};
  else if constexpr (std::is_same_v<T, Duration>)
    return Duration{parse_duration(value)};
  else
    return T(value.as_string());
}

template <class T>
Value to_value(const T& member) {
  if constexpr (is_optional<T>::value) {
    return member ? to_value(*member) : Value();
  } else if constexpr (is_vector<T>::value) {
    Value::List items;
    for (const auto& item : member) items.push_back(to_value(item));
    return Value(std::move(items));
  } else if constexpr (std::is_same_v<T, Bytes>)
    return Value(member.count);
  else if constexpr (std::is_same_v<T, Duration>)
    return Value(member.seconds);
  else if constexpr (std::is_same_v<T, std::filesystem::path>)
    return Value(member.string());
  else
    return Value(member);
}

template <class T>
void describe_type(Option& option) {
  if constexpr (is_optional<T>::value) {
    option.may_be_unset = true;
    describe_type<typename T::value_type>(option);
  } else {
    option.type = option_type<T>();
    if constexpr (is_vector<T>::value) {
      option.element = std::make_shared<Option>();
      option.element->name = option.name;
      describe_type<typename T::value_type>(*option.element);
    }
  }
}

/// Makes the schema belong to `Owner`, with Owner's defaults, unless it does already.
template <class Owner>
void own(Schema& schema) {
  if (schema.owner == typeid(void)) {
    schema.owner = typeid(Owner);
    schema.prototype = std::make_shared<const Owner>();
    schema.clone = [](const void* options) -> std::shared_ptr<void> {
      return std::make_shared<Owner>(*static_cast<const Owner*>(options));
    };
  }
  TITAN_CHECK(schema.owner == typeid(Owner), plugin,
              "options of two different structs were declared for one component: ",
              schema.owner.name(), " and ", typeid(Owner).name());
}

}  // namespace detail

/// The words of an enum member: `{{"linear", Decay::linear}, {"cosine", Decay::cosine}}`.
template <class E>
using EnumNames = std::vector<std::pair<std::string, E>>;

/// The declaring calls, shared by everything that has options. Each constraint applies to the
/// option declared last.
template <class Self>
class SchemaDsl {
 public:
  /// Declares an option that is stored in `member`; its default is the member's initial value.
  template <class Member, class Owner>
  Self& option(std::string name, Member Owner::*member, std::string help) {
    Option& option = declare<Owner>(std::move(name), std::move(help));
    detail::describe_type<Member>(option);
    option.assign = [member](void* options, const Value& value) {
      static_cast<Owner*>(options)->*member = detail::from_value<Member>(value);
    };
    option.read = [member](const void* options) {
      return detail::to_value(static_cast<const Owner*>(options)->*member);
    };
    return finish(option);
  }

  /// Where the option is not set itself, it follows from a key of the core, "training.dtype": it is
  /// the value there, or what `feed` makes of it (null: the option's own default). Options follow
  /// from no key by having its name.
  Self& fed_by(std::string core_key,
               std::function<Value(const Value& core, const JobView& job)> feed = {}) {
    Option& last = schema_->options.back();
    last.fed_by = std::move(core_key);
    last.feed = std::move(feed);
    return self();
  }

  /// An enumeration: `names` gives each word and what it stands for.
  template <class Enum, class Owner>
  requires std::is_enum_v<Enum> Self& option(std::string name, Enum Owner::*member,
                                             std::string help,
                                             std::type_identity_t<EnumNames<Enum>> names) {
    Option& option = declare<Owner>(std::move(name), std::move(help));
    option.type = OptionType::enumeration;
    for (const auto& [word, value] : names) option.choices.push_back(word);
    option.assign = [member, names](void* options, const Value& value) {
      for (const auto& [word, meaning] : names)
        if (word == value.as_string()) static_cast<Owner*>(options)->*member = meaning;
    };
    option.read = [member, names](const void* options) -> Value {
      for (const auto& [word, meaning] : names)
        if (meaning == static_cast<const Owner*>(options)->*member) return word;
      return {};
    };
    return finish(option);
  }

  /// A nested table: `declare` gets a builder for the inner struct.
  template <class Inner, class Owner, class Declare>
  Self& table(std::string name, Inner Owner::*member, std::string help, Declare&& declare_inner);

  Self& greater_than(double bound) { return bounded(&Option::lower, bound, false); }
  Self& at_least(double bound) { return bounded(&Option::lower, bound, true); }
  Self& less_than(double bound) { return bounded(&Option::upper, bound, false); }
  Self& at_most(double bound) { return bounded(&Option::upper, bound, true); }
  Self& between(double lower, double upper) { return at_least(lower), at_most(upper); }
  /// The only words a string option (or each item of a list) may be.
  Self& one_of(std::vector<std::string> words) {
    target().choices = std::move(words);
    return self();
  }

 protected:
  explicit SchemaDsl(Schema& schema) : schema_(&schema) {}
  Schema& schema() { return *schema_; }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  /// A list's constraints are its items' constraints.
  Option& target() {
    TITAN_CHECK(!schema_->options.empty(), plugin, "a constraint stands before the first option");
    Option& last = schema_->options.back();
    return last.element ? *last.element : last;
  }
  Self& bounded(std::optional<Option::Bound> Option::*side, double value, bool inclusive) {
    target().*side = Option::Bound{value, inclusive};
    return self();
  }
  template <class Owner>
  Option& declare(std::string name, std::string help) {
    if constexpr (requires { Self::template check_owner<Owner>(); })
      Self::template check_owner<Owner>();
    detail::own<Owner>(*schema_);
    TITAN_CHECK(!schema_->find(name), plugin, "option '", name, "' is declared twice");
    Option& option = schema_->options.emplace_back();
    option.name = std::move(name);
    option.help = std::move(help);
    return option;
  }
  Self& finish(Option& option) {
    option.default_value = option.read(schema_->prototype.get());
    return self();
  }

  Schema* schema_;
};

/// Builds a schema that stands alone: the core's sections, nested tables.
class SchemaBuilder : public SchemaDsl<SchemaBuilder> {
 public:
  explicit SchemaBuilder(Schema& schema) : SchemaDsl(schema) {}
};

template <class Self>
template <class Inner, class Owner, class Declare>
Self& SchemaDsl<Self>::table(std::string name, Inner Owner::*member, std::string help,
                             Declare&& declare_inner) {
  Option& option = declare<Owner>(std::move(name), std::move(help));
  option.type = OptionType::table;
  auto inner = std::make_shared<Schema>();
  inner->owner = typeid(Inner);
  inner->prototype =
      std::make_shared<const Inner>(static_cast<const Owner*>(schema_->prototype.get())->*member);
  SchemaBuilder builder(*inner);
  declare_inner(builder);
  option.table = inner;
  option.assign = [member, inner](void* options, const Value& value) {
    inner->assign(&(static_cast<Owner*>(options)->*member), value);
  };
  option.read = [member, inner](const void* options) {
    return inner->read(&(static_cast<const Owner*>(options)->*member));
  };
  return finish(option);
}

}  // namespace titan
