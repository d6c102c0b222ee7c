#include <titan/value.h>

#include <charconv>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan {
namespace {

[[noreturn]] void wrong_type(const char* wanted, Value::Type found) {
  fail(ErrorKind::internal, "a value of type ", wanted, " was asked for, but it is ",
       to_string(found));
}

template <class T, class Variant>
auto& get(Variant& data, const char* wanted, Value::Type found) {
  if (auto* held = std::get_if<T>(&data)) return *held;
  wrong_type(wanted, found);
}

void append_string(std::string& out, const std::string& text) {
  // nlohmann escapes exactly as JSON requires; invalid UTF-8 becomes U+FFFD instead of an exception
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  const std::string_view text(buffer, end - buffer);
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos)
    out += ".0";  // stays a number when read back
}

void newline(std::string& out, int indent, int depth) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * depth, ' ');
}

void append_json(std::string& out, const Value& value, int indent, int depth) {
  switch (value.type()) {
    case Value::Type::null:
      out += "null";
      return;
    case Value::Type::boolean:
      out += value.as_boolean() ? "true" : "false";
      return;
    case Value::Type::integer:
      out += std::to_string(value.as_integer());
      return;
    case Value::Type::number:
      append_number(out, value.as_number());
      return;
    case Value::Type::string:
      append_string(out, value.as_string());
      return;
    case Value::Type::list: {
      out += '[';
      bool first = true;
      for (const Value& item : value.as_list()) {
        if (!first) out += ',';
        first = false;
        newline(out, indent, depth + 1);
        append_json(out, item, indent, depth + 1);
      }
      if (!first) newline(out, indent, depth);
      out += ']';
      return;
    }
    case Value::Type::map: {
      out += '{';
      bool first = true;
      for (const auto& [name, member] : value.as_map()) {
        if (!first) out += ',';
        first = false;
        newline(out, indent, depth + 1);
        append_string(out, name);
        out += indent < 0 ? ":" : ": ";
        append_json(out, member, indent, depth + 1);
      }
      if (!first) newline(out, indent, depth);
      out += '}';
      return;
    }
  }
}

// deep enough for every file that people write, far below the limit of the stack
constexpr int kMaxDepth = 200;

Value convert(const nlohmann::ordered_json& json, int depth = 0) {
  TITAN_CHECK(depth < kMaxDepth || !json.is_structured(), data,
              "malformed JSON: nested deeper than ", kMaxDepth, " levels");
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::boolean:
      return json.get<bool>();
    case Type::number_integer:
      return json.get<int64_t>();
    case Type::number_unsigned: {
      const auto number = json.get<uint64_t>();
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return static_cast<double>(number);
      return static_cast<int64_t>(number);
    }
    case Type::number_float:
      return json.get<double>();
    case Type::string:
      return json.get<std::string>();
    case Type::array: {
      Value::List items;
      for (const auto& item : json) items.push_back(convert(item, depth + 1));
      return items;
    }
    case Type::object: {
      Value::Map members;
      for (const auto& [name, member] : json.items())
        members.emplace_back(name, convert(member, depth + 1));
      return members;
    }
    default:
      return {};
  }
}

}  // namespace

bool Value::as_boolean() const {
  return get<bool>(data_, "boolean", type());
}
int64_t Value::as_integer() const {
  return get<int64_t>(data_, "integer", type());
}
double Value::as_number() const {
  if (is_integer()) return static_cast<double>(as_integer());
  return get<double>(data_, "number", type());
}
const std::string& Value::as_string() const& {
  return get<std::string>(data_, "string", type());
}
const Value::List& Value::as_list() const& {
  return get<List>(data_, "list", type());
}
Value::List& Value::as_list() & {
  return get<List>(data_, "list", type());
}
const Value::Map& Value::as_map() const& {
  return get<Map>(data_, "map", type());
}
Value::Map& Value::as_map() & {
  return get<Map>(data_, "map", type());
}
std::string Value::as_string() && {
  return std::move(get<std::string>(data_, "string", type()));
}
Value::List Value::as_list() && {
  return std::move(get<List>(data_, "list", type()));
}
Value::Map Value::as_map() && {
  return std::move(get<Map>(data_, "map", type()));
}

const Value* Value::find(std::string_view name) const {
  if (const Map* members = std::get_if<Map>(&data_))
    for (const auto& [key, value] : *members)
      if (key == name) return &value;
  return nullptr;
}
Value* Value::find(std::string_view name) {
  return const_cast<Value*>(static_cast<const Value*>(this)->find(name));
}
const Value& Value::at(std::string_view name) const {
  const Value* found = find(name);
  TITAN_CHECK(found, data, "member '", name, "' is missing");
  return *found;
}
Value& Value::operator[](std::string_view name) {
  if (is_null()) data_ = Map{};
  if (Value* found = find(name)) return *found;
  return as_map().emplace_back(std::string(name), Value()).second;
}

const char* to_string(Value::Type type) {
  constexpr const char* kNames[] = {"null",   "boolean", "integer", "number",
                                    "string", "list",    "map"};
  return kNames[static_cast<int>(type)];
}

std::string to_json(const Value& value, int indent) {
  std::string out;
  append_json(out, value, indent, 0);
  return out;
}

Value parse_json(std::string_view text) {
  const std::string encoding = utf16_hint(text);
  TITAN_CHECK(encoding.empty(), data, "malformed JSON", encoding);
  // the parser would take a zero byte for the end of the text
  const size_t zero = text.find('\0');
  TITAN_CHECK(zero == text.npos, data, "malformed JSON: there is a zero byte at byte ", zero);
  try {
    return convert(nlohmann::ordered_json::parse(text));
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorKind::data, "malformed JSON: ", e.what());
  }
}

}  // namespace titan
