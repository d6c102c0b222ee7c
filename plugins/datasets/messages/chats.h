// Parses members of a JSON line as chats: lists of messages with "role" and "content". Used by
// message_line and preference.
#pragma once

#include <cstdint>
#include <string_view>

#include <titan/dataset.h>
#include <titan/value.h>

namespace titan::datasets {

/// The list of messages in member `name` of `line`, each checked to be a map whose role is a
/// non-empty string.
Value::List messages_in(const Value& line, std::string_view name);
/// The same for messages {"from", "value"}, converted to {"role", "content"}.
Value::List shared_messages_in(const Value& line, std::string_view name);

/// A chat of `messages`, with the template variables of `line`. The assistant's messages from index
/// `first_target` on contribute to the loss; throws a data Error if there are none.
Conversation chat_of(Value::List messages, int64_t first_target, const Value& line);

/// The index of the assistant's last message; -1: none.
int64_t last_answer(const Value::List& messages);

/// Member `name` of `line`; throws a data Error if it is missing.
const Value& member(const Value& line, std::string_view name);
/// "a text", "a list", ...: for errors.
const char* kind_of(const Value& value);
/// The member's string; throws a data Error if it is not one.
const std::string& text_in(const Value& line, std::string_view name);

}  // namespace titan::datasets
