// The members of a line as chats: lists of messages in one form. Used by message_line and
// preference.
#pragma once

#include <cstdint>
#include <string_view>

#include <titan/dataset.h>
#include <titan/value.h>

namespace titan::datasets {

/// The list of messages in member `name` of `line`, each checked: a map with a role that is a text.
Value::List messages_in(const Value& line, std::string_view name);
/// The same of messages {"from", "value"}, as {"role", "content"}.
Value::List shared_messages_in(const Value& line, std::string_view name);

/// A chat of `messages`, with what `line` has for its template. What the assistant says from
/// `first_target` on is learned; throws when that is nothing.
Conversation chat_of(Value::List messages, int64_t first_target, const Value& line);

/// The place of the last message of the assistant; -1 when there is none.
int64_t last_answer(const Value::List& messages);

/// Member `name` of `line`; throws when it is missing.
const Value& member(const Value& line, std::string_view name);
/// "a text", "a list", for messages.
const char* kind_of(const Value& value);
/// Its text; throws when it is none.
const std::string& text_in(const Value& line, std::string_view name);

}  // namespace titan::datasets
