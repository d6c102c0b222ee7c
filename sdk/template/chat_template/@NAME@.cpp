// Chat template @FULL_NAME@. As generated, it writes ChatML: <|im_start|>ROLE, a line end, the content, <|im_end|>.
// A message whose content is not a string is an error. Select it with [chat_template] name = "@FULL_NAME@".
#include <string>

#include <titan/chat_template.h>
#include <titan/error.h>
#include <titan/plugin.h>

namespace {

struct @CLASS@Options {
  std::string system;  // for conversations that do not begin with a system message; empty: none
};

class @CLASS@ final : public titan::ChatTemplate {
 public:
  @CLASS@(const @CLASS@Options& options, titan::ChatTemplateContext) : options_(options) {}

  std::string render(const titan::Value& conversation, bool adds_generation_prompt) const override {
    const titan::Value& messages = conversation.at("messages");
    TITAN_CHECK(messages.is_list(), data, "messages must be a list");
    std::string text;
    for (const titan::Value& message : messages.as_list()) {
      TITAN_CHECK(message.is_map(), data, "a message must be a map of role and content");
      const titan::Value &role = message.at("role"), &content = message.at("content");
      TITAN_CHECK(role.is_string() && content.is_string(), data, "role and content of a message must be strings");
      if (text.empty() && role.as_string() != "system" && !options_.system.empty()) text += turn("system", options_.system);
      text += turn(role.as_string(), content.as_string());
    }
    return adds_generation_prompt ? text + "<|im_start|>assistant\n" : text;
  }

 private:
  static std::string turn(const std::string& role, const std::string& content) {
    return "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
  }

  @CLASS@Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Renders conversations as ChatML.")
      .option("system", &@CLASS@Options::system, "System message for conversations that do not begin with one");
}
