// See chats.h.
#include "plugins/datasets/messages/chats.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::datasets {
namespace {

struct Role {
  std::string_view theirs, ours;
};
/// The names of speakers in ShareGPT data sets, and the roles that they become.
constexpr std::array<Role, 9> kRoles = {{{"human", "user"},
                                         {"user", "user"},
                                         {"gpt", "assistant"},
                                         {"assistant", "assistant"},
                                         {"chatgpt", "assistant"},
                                         {"system", "system"},
                                         {"tool", "tool"},
                                         {"observation", "tool"},
                                         {"function_response", "tool"}}};

std::optional<std::string_view> role_of(std::string_view theirs) {
  for (const Role& role : kRoles)
    if (role.theirs == theirs) return role.ours;
  return std::nullopt;
}

std::string nth(std::string_view name, size_t i) {
  return "message " + std::to_string(i + 1) + " of '" + std::string(name) + "'";
}

const Value::List& list_in(const Value& line, std::string_view name) {
  const Value& value = member(line, name);
  if (!value.is_list())
    fail(ErrorKind::data, "member '", name, "' is ", kind_of(value), ", not a list of messages");
  TITAN_CHECK(!value.as_list().empty(), data, "member '", name, "' is an empty list");
  return value.as_list();
}

/// The string member `key` of a message.
const std::string& text_of(const Value& message, std::string_view key, const std::string& which) {
  if (!message.is_map())
    fail(ErrorKind::data, which, " is ", kind_of(message), ", not an object with '", key, "'");
  const Value* value = message.find(key);
  if (!value) {
    std::string names;
    for (const auto& [name, ignored] : message.as_map())
      names += (names.empty() ? "" : ", ") + in_quotes(name, 48);
    fail(ErrorKind::data, which, " has no '", key, "'; it has ", names.empty() ? "nothing" : names);
  }
  if (!value->is_string())
    fail(ErrorKind::data, which, ": '", key, "' is ", kind_of(*value), ", not a text");
  return value->as_string();
}

/// Adds the members of the line that a template may use in addition to the messages.
void add_variables(const Value& line, Value& chat) {
  const auto add = [&](const std::string& name, const Value& value) {
    TITAN_CHECK(name != "messages" && name != "add_generation_prompt", data,
                "member 'chat_template_kwargs' must not hold '", name, "'");
    // some files store lists as JSON strings, because their columns have one type
    chat[name] = value.is_string() && (name == "tools" || name == "documents")
                     ? parse_json(value.as_string())
                     : value;
  };
  for (const char* name : {"tools", "documents"})
    if (const Value* value = line.find(name); value && !value->is_null()) add(name, *value);
  const Value* more = line.find("chat_template_kwargs");
  if (!more || more->is_null()) return;
  TITAN_CHECK(more->is_map(), data, "member 'chat_template_kwargs' is ", kind_of(*more),
              ", not an object");
  for (const auto& [name, value] : more->as_map()) add(name, value);
}

}  // namespace

const char* kind_of(const Value& value) {
  switch (value.type()) {
    case Value::Type::null:
      return "null";
    case Value::Type::boolean:
      return "a boolean";
    case Value::Type::integer:
    case Value::Type::number:
      return "a number";
    case Value::Type::string:
      return "a text";
    case Value::Type::list:
      return "a list";
    case Value::Type::map:
      return "an object";
  }
  return "nothing";
}

const Value& member(const Value& line, std::string_view name) {
  const Value* value = line.find(name);
  if (!value) fail(ErrorKind::data, "member '", name, "' is missing");
  return *value;
}

const std::string& text_in(const Value& line, std::string_view name) {
  const Value& value = member(line, name);
  if (!value.is_string())
    fail(ErrorKind::data, "member '", name, "' is ", kind_of(value), ", not a text");
  return value.as_string();
}

Value::List messages_in(const Value& line, std::string_view name) {
  const Value::List& messages = list_in(line, name);
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = text_of(messages[i], "role", nth(name, i));
    TITAN_CHECK(!role.empty(), data, nth(name, i), ": 'role' is empty");
  }
  return messages;
}

Value::List shared_messages_in(const Value& line, std::string_view name) {
  const Value::List& theirs = list_in(line, name);
  if (theirs[0].find("role")) return messages_in(line, name);  // ShareGPT's in name only
  Value::List messages;
  for (size_t i = 0; i < theirs.size(); ++i) {
    const std::string& from = text_of(theirs[i], "from", nth(name, i));
    const std::optional<std::string_view> role = role_of(from);
    if (!role) {
      std::string allowed;
      for (const Role& known : kRoles)
        allowed += (allowed.empty() ? "" : ", ") + std::string(known.theirs);
      fail(ErrorKind::data, nth(name, i), " is from ", in_quotes(from, 48), "; allowed: ", allowed);
    }
    const std::string& content = text_of(theirs[i], "value", nth(name, i));
    Value& message = messages.emplace_back(Value::map({{"role", *role}, {"content", content}}));
    if (const Value* weight = theirs[i].find("weight")) message["weight"] = *weight;
  }
  return messages;
}

int64_t last_answer(const Value::List& messages) {
  auto last = static_cast<int64_t>(messages.size()) - 1;
  while (last >= 0 && messages[static_cast<size_t>(last)].at("role").as_string() != "assistant")
    --last;
  return last;
}

Conversation chat_of(Value::List messages, int64_t first_target, const Value& line) {
  TITAN_CHECK(last_answer(messages) >= first_target, data, "no message ",
              first_target > 0 ? "after the prompt " : "",
              "has the role 'assistant', so nothing would contribute to the loss");
  Conversation conversation;
  conversation.chat["messages"] = Value(std::move(messages));
  conversation.first_target = first_target;
  add_variables(line, conversation.chat);
  return conversation;
}

}  // namespace titan::datasets
