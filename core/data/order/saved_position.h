// Reads members of a saved data position, which may be damaged or from another run. Used by the
// readers and packers that restore one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <titan/error.h>
#include <titan/value.h>

namespace titan::core {

inline const Value& saved_member(const Value& position, std::string_view name) {
  const Value* member = position.is_map() ? position.find(name) : nullptr;
  TITAN_CHECK(member, data, "the saved data position has no '", name, "'");
  return *member;
}

/// At least `lowest`.
inline int64_t saved_integer(const Value& position, std::string_view name, int64_t lowest = 0) {
  const Value& member = saved_member(position, name);
  TITAN_CHECK(member.is_integer(), data, "the saved data position has no integer '", name, "'");
  const int64_t value = member.as_integer();
  TITAN_CHECK(value >= lowest, data, "the saved data position has ", name, " = ", value,
              ", which must be >= ", lowest);
  return value;
}

inline const std::string& saved_text(const Value& position, std::string_view name) {
  const Value& member = saved_member(position, name);
  TITAN_CHECK(member.is_string(), data, "the saved data position has no text '", name, "'");
  return member.as_string();
}

inline const Value::List& saved_list(const Value& position, std::string_view name) {
  const Value& member = saved_member(position, name);
  TITAN_CHECK(member.is_list(), data, "the saved data position has no list '", name, "'");
  return member.as_list();
}

}  // namespace titan::core
