// Typed option schemas: a plugin (or a section of the core) declares each option once, by pointing
// at a member of its options struct. TOML checking, command-line flags, `titan describe`, the docs
// and the resolved configuration all come from that one declaration. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/export.h>
#include <titan/schema.h>
#include <titan/value.h>

namespace titan {

namespace detail {

/// The type of an options struct, and how to make and copy one.
struct OwnerType {
  const std::type_info& type;
  std::shared_ptr<const void> (*make)();
  std::shared_ptr<void> (*clone)(const void* options);
};

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

template <class T>
const MemberType& member_type() {
  static constexpr MemberType kType = {
      [](Option& option) { describe_type<T>(option); },
      [](void* member, const Value& value) { *static_cast<T*>(member) = from_value<T>(value); },
      [](const void* member) { return to_value(*static_cast<const T*>(member)); }};
  return kType;
}

// compiled once, in the library, because most options have these types
#define TITAN_MEMBER_TYPES(each)                                                                   \
  each(bool) each(int64_t) each(double) each(std::string) each(std::filesystem::path) each(Bytes)  \
      each(Duration) each(std::optional<bool>) each(std::optional<int64_t>)                        \
          each(std::optional<double>) each(std::optional<std::string>)                             \
              each(std::optional<std::filesystem::path>) each(std::optional<Bytes>)                \
                  each(std::optional<Duration>) each(std::vector<bool>) each(std::vector<int64_t>) \
                      each(std::vector<double>) each(std::vector<std::string>)                     \
                          each(std::vector<std::filesystem::path>)
#define TITAN_DECLARED_THERE(T) extern template TITAN_API const MemberType& member_type<T>();
TITAN_MEMBER_TYPES(TITAN_DECLARED_THERE)
#undef TITAN_DECLARED_THERE

template <class E>
const MemberType& enumeration_type() {
  static constexpr MemberType kType = {
      [](Option& option) { option.type = OptionType::enumeration; },
      [](void* member, const Value& value) {
        *static_cast<E*>(member) = static_cast<E>(value.as_integer());
      },
      [](const void* member) {
        return Value(static_cast<int64_t>(*static_cast<const E*>(member)));
      }};
  return kType;
}

template <class Owner>
const OwnerType& owner_type() {
  static const OwnerType kType = {
      typeid(Owner), []() -> std::shared_ptr<const void> { return std::make_shared<Owner>(); },
      [](const void* options) -> std::shared_ptr<void> {
        return std::make_shared<Owner>(*static_cast<const Owner*>(options));
      }};
  return kType;
}

/// Sets the owner of the schema, with its defaults, unless it is set already.
TITAN_API void own(Schema& schema, const OwnerType& owner);

/// The non-template part of SchemaDsl.
class TITAN_API SchemaCalls {
 protected:
  explicit SchemaCalls(Schema& schema) : schema_(&schema) {}
  Schema& schema() const { return *schema_; }

  /// The struct with the defaults, after own().
  const void* owned_by(const OwnerType& owner) const;
  Option& add(std::string_view name, std::string_view help, size_t offset, const MemberType& type);
  /// Adds a table whose defaults are those that the outer struct gives its member.
  Option& add_table(std::string_view name, std::string_view help, size_t offset,
                    const OwnerType& inner);
  /// Reads the default from the prototype.
  void finish(Option& option) const;
  void follow(std::string_view core_key,
              std::function<Value(const Value& core, const JobView& job)> feed);
  void bound(std::optional<Option::Bound> Option::*side, double value, bool inclusive);
  void allow_only(std::vector<std::string> words);
  void allow_only(std::initializer_list<const char*> words);

  template <class Member, class Owner>
  size_t offset_of(Member Owner::*member) const {
    const auto* owner = static_cast<const Owner*>(owned_by(owner_type<Owner>()));
    return static_cast<size_t>(reinterpret_cast<const char*>(&(owner->*member)) -
                               reinterpret_cast<const char*>(owner));
  }

 private:
  Option& target();

  Schema* schema_;
};

}  // namespace detail

/// A word of an enumeration, and the value it denotes.
template <class E>
struct EnumName {
  const char* word;
  E meaning;
};

/// The words of an enum member: `{{"linear", Decay::linear}, {"cosine", Decay::cosine}}`.
template <class E>
using EnumNames = std::initializer_list<EnumName<E>>;

/// The calls that declare options, shared by all declarations: plugins, sections of the core,
/// tables. Each constraint applies to the option declared last.
template <class Self>
class SchemaDsl : protected detail::SchemaCalls {
 public:
  /// Declares an option that is stored in `member`; its default is the member's initial value.
  template <class Member, class Owner>
  Self& option(std::string_view name, Member Owner::*member, std::string_view help) {
    check_self<Owner>();
    finish(add(name, help, offset_of(member), detail::member_type<Member>()));
    return self();
  }

  /// If the configuration does not set the option, its value comes from a key of the core, such as
  /// "training.dtype": the value of that key, or `feed` of it (null: the option's own default). An
  /// option never follows a key merely because the names are equal.
  Self& fed_by(std::string_view core_key) { return follow(core_key, nullptr), self(); }
  Self& fed_by(std::string_view core_key,
               std::function<Value(const Value& core, const JobView& job)> feed) {
    return follow(core_key, std::move(feed)), self();
  }

  /// An enumeration: `names` gives each word and the value it denotes.
  template <class Enum, class Owner>
  requires std::is_enum_v<Enum> Self& option(std::string_view name, Enum Owner::*member,
                                             std::string_view help,
                                             std::type_identity_t<EnumNames<Enum>> names) {
    check_self<Owner>();
    Option& option = add(name, help, offset_of(member), detail::enumeration_type<Enum>());
    for (const EnumName<Enum>& name_of : names) {
      option.choices.emplace_back(name_of.word);
      option.meanings.push_back(static_cast<int64_t>(name_of.meaning));
    }
    finish(option);
    return self();
  }

  /// A nested table: `declare_inner` gets a builder for the inner struct.
  template <class Inner, class Owner, class Declare>
  Self& table(std::string_view name, Inner Owner::*member, std::string_view help,
              Declare&& declare_inner);

  Self& greater_than(double value) { return bound(&Option::lower, value, false), self(); }
  Self& at_least(double value) { return bound(&Option::lower, value, true), self(); }
  Self& less_than(double value) { return bound(&Option::upper, value, false), self(); }
  Self& at_most(double value) { return bound(&Option::upper, value, true), self(); }
  Self& between(double lower, double upper) { return at_least(lower), at_most(upper); }
  /// The only words allowed for a string option (or for each item of a list).
  Self& one_of(std::vector<std::string> words) { return allow_only(std::move(words)), self(); }
  Self& one_of(std::initializer_list<const char*> words) { return allow_only(words), self(); }

 protected:
  explicit SchemaDsl(Schema& schema) : SchemaCalls(schema) {}

 private:
  Self& self() { return static_cast<Self&>(*this); }
  template <class Owner>
  static constexpr void check_self() {
    if constexpr (requires { Self::template check_owner<Owner>(); })
      Self::template check_owner<Owner>();
  }
};

/// Builds a schema without a component: the core's sections, nested tables.
class SchemaBuilder : public SchemaDsl<SchemaBuilder> {
 public:
  explicit SchemaBuilder(Schema& schema) : SchemaDsl(schema) {}
};

template <class Self>
template <class Inner, class Owner, class Declare>
Self& SchemaDsl<Self>::table(std::string_view name, Inner Owner::*member, std::string_view help,
                             Declare&& declare_inner) {
  check_self<Owner>();
  Option& option = add_table(name, help, offset_of(member), detail::owner_type<Inner>());
  SchemaBuilder builder(*option.table);
  declare_inner(builder);
  finish(option);
  return self();
}

}  // namespace titan
