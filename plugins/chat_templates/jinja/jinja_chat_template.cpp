#include "jinja_chat_template.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "template_folder.h"

namespace titan::jinja {
namespace {

Object object_of(const Value& value) {
  switch (value.type()) {
    case Value::Type::null:
      return {};
    case Value::Type::boolean:
      return value.as_boolean();
    case Value::Type::integer:
      return value.as_integer();
    case Value::Type::number:
      return value.as_number();
    case Value::Type::string:
      return value.as_string();
    case Value::Type::list: {
      std::vector<Object> items;
      for (const Value& item : value.as_list()) items.push_back(object_of(item));
      return Object::sequence(std::move(items));
    }
    case Value::Type::map:
      break;
  }
  auto mapping = std::make_shared<Mapping>();
  for (const auto& [name, member] : value.as_map())
    mapping->items.emplace_back(name, object_of(member));
  return mapping;
}

/// Drops null members; passes the reasoning under each name that templates use.
Object message_of(const Value& message) {
  const Value* reasoning = nullptr;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"})
    if (const Value* found = message.find(name); found && !found->is_null() && !reasoning)
      reasoning = found;
  auto result = std::make_shared<Mapping>();
  const Value* thinking = message.find("thinking");
  if (reasoning && (!thinking || thinking->is_null()))
    result->items.emplace_back("thinking", object_of(*reasoning));
  for (const auto& [name, member] : message.as_map())
    if (!member.is_null()) result->items.emplace_back(name, object_of(member));
  if (reasoning) result->set("reasoning_content", object_of(*reasoning));
  return result;
}

Object messages_of(const Value& conversation) {
  const Value* messages = conversation.find("messages");
  TITAN_CHECK(messages && messages->is_list(), data,
              "a conversation needs \"messages\", a list of {\"role\", \"content\"}");
  TITAN_CHECK(!messages->as_list().empty(), data, "a conversation has no messages");
  std::vector<Object> result;
  for (const Value& message : messages->as_list()) {
    TITAN_CHECK(message.is_map(), data, "message ", result.size() + 1, " is a ",
                to_string(message.type()), "; it must be {\"role\", \"content\"}");
    result.push_back(message_of(message));
  }
  return Object::sequence(std::move(result));
}

/// Noon of that day, so that no time zone shifts the day.
std::time_t time_of(const std::string& date) {
  if (date.empty()) return std::time(nullptr);
  std::tm day = {};
  const char* end = ::strptime(date.c_str(), "%Y-%m-%d", &day);
  TITAN_CHECK(end && *end == 0, config, "option 'date' of chat template 'jinja' is ",
              in_quotes(date), "; give a day as 2026-07-26, or \"\" for today");
  day.tm_hour = 12;
  day.tm_isdst = -1;
  return std::mktime(&day);
}

std::string line_of(const TemplateError& error) {
  return error.line > 0 ? ", line " + std::to_string(error.line) : std::string();
}

}  // namespace

JinjaChatTemplate::JinjaChatTemplate(const JinjaOptions& options, ChatTemplateContext context)
    : wanted_(options.template_name), now_(time_of(options.date)) {
  TemplateFolder folder = read_template_folder(context.assets_path, options.file);
  for (auto& [name, text] : folder.special_tokens) special_tokens_.emplace_back(name, text);
  std::string names;
  bool has_wanted = false;
  for (const NamedTemplate& found : folder.templates) {
    names += (names.empty() ? "" : ", ") + in_quotes(found.name);
    const bool is_used = wanted_.empty() ? found.name == "default" || found.name == "tool_use"
                                         : found.name == wanted_;
    has_wanted = has_wanted || (is_used && found.name != "tool_use") || found.name == wanted_;
    if (!is_used) continue;
    try {
      templates_.push_back({found.name, found.place, Template(found.text)});
    } catch (const TemplateError& error) {
      fail(ErrorKind::data, "cannot compile the chat template ", in_quotes(found.place),
           line_of(error), ": ", error.what());
    }
  }
  TITAN_CHECK(has_wanted, config, "there is no chat template ",
              in_quotes(wanted_.empty() ? "default" : wanted_), " in ",
              in_quotes(context.assets_path), ", which has ", names,
              "; choose one by option 'template_name' of chat template 'jinja'");
}

const JinjaChatTemplate::Compiled& JinjaChatTemplate::chosen(bool has_tools) const {
  const auto named = [&](const std::string& name) {
    return std::find_if(templates_.begin(), templates_.end(),
                        [&](const Compiled& compiled) { return compiled.name == name; });
  };
  if (!wanted_.empty()) return templates_.front();
  if (const auto found = named("tool_use"); has_tools && found != templates_.end()) return *found;
  return *named("default");
}

std::string JinjaChatTemplate::render(const Value& conversation,
                                      bool adds_generation_prompt) const {
  TITAN_CHECK(conversation.is_map(), data, "a conversation must be an object with \"messages\"");
  auto variables = special_tokens_;
  const auto set = [&](const std::string& name, Object value) {
    for (auto& [known, old] : variables)
      if (known == name) {
        old = std::move(value);
        return;
      }
    variables.emplace_back(name, std::move(value));
  };
  for (const char* name : {"tools", "documents"}) set(name, {});
  for (const auto& [name, value] : conversation.as_map())
    if (name != "messages") set(name, object_of(value));
  set("messages", messages_of(conversation));
  set("add_generation_prompt", adds_generation_prompt);
  const Value* tools = conversation.find("tools");
  const Compiled& compiled = chosen(tools && !tools->is_null());
  try {
    return compiled.program.render(std::move(variables), now_);
  } catch (const TemplateError& error) {
    fail(ErrorKind::data, "the chat template ", in_quotes(compiled.place), line_of(error),
         " refuses the conversation: ", printable(error.what(), 1000));
  }
}

}  // namespace titan::jinja
