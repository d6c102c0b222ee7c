// See message_line.h.
#include "plugins/datasets/messages/message_line.h"

#include <array>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "plugins/datasets/messages/chats.h"
#include "plugins/datasets/messages/preference.h"

namespace titan::datasets {
namespace {

struct FormName {
  Form form;
  const char* member;  // that identifies the form
  const char* option;
};
constexpr std::array<FormName, 4> kForms = {
    {{Form::messages, "messages", "messages"},
     {Form::conversations, "conversations", "conversations"},
     {Form::completion, "completion", "completion"},
     {Form::preference, "chosen", "preference"}}};

Form form_of(const Value& line) {
  const FormName* found = nullptr;
  for (const FormName& form : kForms) {
    if (!line.find(form.member)) continue;
    if (found)
      fail(ErrorKind::data, "the line has both '", found->member, "' and '", form.member,
           "'; option 'form' of dataset 'messages' says which to read: \"", found->option,
           "\" or \"", form.option, "\"");
    found = &form;
  }
  if (found) return found->form;
  std::string names;
  for (const auto& [name, ignored] : line.as_map())
    names += (names.empty() ? "" : ", ") + in_quotes(name, 48);
  fail(ErrorKind::data,
       "the line has none of 'messages', 'conversations', 'completion' (with "
       "'prompt') and 'chosen' (with 'rejected'); it has ",
       names.empty() ? "nothing" : names);
}

Conversation chat(Value::List messages, Learn learn, const Value& line) {
  const int64_t first = learn == Learn::last ? last_answer(messages) : 0;
  return chat_of(std::move(messages), first < 0 ? 0 : first, line);
}

Conversation completion(const Value& line, Learn learn) {
  const Value& prompt = member(line, "prompt");
  const Value& completion = member(line, "completion");
  TITAN_CHECK(prompt.type() == completion.type() && (prompt.is_string() || prompt.is_list()), data,
              "'prompt' is ", kind_of(prompt), " and 'completion' is ", kind_of(completion),
              "; both must be texts or both lists of messages");
  if (prompt.is_string())
    return {.prompt = text_in(line, "prompt"), .completion = text_in(line, "completion")};
  Value::List messages = messages_in(line, "prompt");
  auto first = static_cast<int64_t>(messages.size());
  for (Value& message : messages_in(line, "completion")) messages.push_back(std::move(message));
  if (learn == Learn::last) first = std::max(first, last_answer(messages));
  return chat_of(std::move(messages), first, line);
}

}  // namespace

void read_line(std::string_view line, const MessagesOptions& options, Document& document) {
  const Value object = parse_json(line);
  if (!object.is_map()) fail(ErrorKind::data, "the line is ", kind_of(object), ", not an object");
  std::vector<Conversation>& conversations = document.conversations;
  conversations.clear();
  switch (options.form == Form::automatic ? form_of(object) : options.form) {
    case Form::automatic:
    case Form::messages:
      conversations.push_back(chat(messages_in(object, "messages"), options.learn, object));
      break;
    case Form::conversations:
      conversations.push_back(
          chat(shared_messages_in(object, "conversations"), options.learn, object));
      break;
    case Form::completion:
      conversations.push_back(completion(object, options.learn));
      break;
    case Form::preference:
      read_preference(object, document);
      break;
  }
}

}  // namespace titan::datasets
