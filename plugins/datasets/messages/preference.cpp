// See preference.h.
#include "plugins/datasets/messages/preference.h"

#include <algorithm>
#include <string>
#include <utility>

#include <titan/error.h>

#include "plugins/datasets/messages/chats.h"

namespace titan::datasets {
namespace {

/// Length of the prompt: the common start of both, but at least one item of each is left as the
/// answer. As TRL's extract_prompt.
template <class Items>
size_t common_start(const Items& chosen, const Items& rejected) {
  const size_t shorter = std::min(chosen.size(), rejected.size());
  size_t same = 0;
  while (same < shorter && chosen[same] == rejected[same]) ++same;
  return std::min(same, shorter - 1);
}

/// The same for texts, in whole characters; a space before the answers belongs to them.
size_t common_text(const std::string& chosen, const std::string& rejected) {
  size_t same = common_start(chosen, rejected);
  while (same > 0 && (static_cast<unsigned char>(chosen[same]) & 0xC0) == 0x80) --same;
  return same > 0 && chosen[same - 1] == ' ' ? same - 1 : same;
}

void require_difference(bool differ) {
  TITAN_CHECK(differ, data, "'chosen' and 'rejected' are the same");
}

void read_texts(const Value& line, Document& document) {
  std::string chosen = text_in(line, "chosen"), rejected = text_in(line, "rejected"), prompt;
  TITAN_CHECK(!chosen.empty() && !rejected.empty(), data, "'",
              chosen.empty() ? "chosen" : "rejected", "' is an empty text");
  require_difference(chosen != rejected);
  if (line.find("prompt")) {
    prompt = text_in(line, "prompt");
  } else {
    const size_t same = common_text(chosen, rejected);
    prompt = chosen.substr(0, same);
    chosen.erase(0, same);
    rejected.erase(0, same);
  }
  for (std::string* answer : {&chosen, &rejected})
    document.conversations.push_back({.prompt = prompt, .completion = std::move(*answer)});
}

/// Whether one of the first `count` messages has the content `text`.
bool is_said(const Value::List& messages, size_t count, const std::string& text) {
  return std::any_of(messages.begin(), messages.begin() + static_cast<int64_t>(count),
                     [&](const Value& message) {
                       const Value* content = message.find("content");
                       return content && content->is_string() && content->as_string() == text;
                     });
}

void read_chats(const Value& line, Document& document) {
  Value::List chosen = messages_in(line, "chosen"), rejected = messages_in(line, "rejected");
  require_difference(chosen != rejected);
  const Value* prompt = line.find("prompt");
  size_t first = 0;
  if (prompt && prompt->is_list()) {
    const Value::List start = messages_in(line, "prompt");
    first = start.size();
    chosen.insert(chosen.begin(), start.begin(), start.end());
    rejected.insert(rejected.begin(), start.begin(), start.end());
  } else {
    first = common_start(chosen, rejected);
    // next to whole chats, a prompt text must repeat one of their common messages
    TITAN_CHECK(!prompt || (prompt->is_string() && is_said(chosen, first, prompt->as_string())),
                data, "'prompt' is ", kind_of(*prompt),
                ", 'chosen' and 'rejected' are lists of messages that do not both begin with it; "
                "make it a list of messages too");
  }
  for (Value::List* messages : {&chosen, &rejected})
    document.conversations.push_back(
        chat_of(std::move(*messages), static_cast<int64_t>(first), line));
}

}  // namespace

void read_preference(const Value& line, Document& document) {
  const Value& chosen = member(line, "chosen");
  const Value& rejected = member(line, "rejected");
  TITAN_CHECK(chosen.type() == rejected.type() && (chosen.is_string() || chosen.is_list()), data,
              "'chosen' is ", kind_of(chosen), " and 'rejected' is ", kind_of(rejected),
              "; both must be texts or both lists of messages");
  chosen.is_string() ? read_texts(line, document) : read_chats(line, document);
}

}  // namespace titan::datasets
