// Chat templates with one defect each, named after the conformance test that must find it. `right`
// has none, `empty` does nothing.
#include <atomic>
#include <stdexcept>
#include <string>

#include <titan/chat_template.h>
#include <titan/error.h>
#include <titan/plugin.h>

#include "shared_text.h"

namespace {

enum class Fault {
  none,
  renders,
  renders_order,
  roles,
  generation_prompt,
  generation_prompt_strips,
  deterministic,
  threads,
  contents_kept,
  malformed,
  malformed_internal
};

// Writes <ROLE>CONTENT</end> and a line end.
template <Fault fault>
class Marked final : public titan::ChatTemplate {
 public:
  explicit Marked(titan::ChatTemplateContext) {}

  std::string render(const titan::Value& conversation, bool adds_generation_prompt) const override {
    if (fault == Fault::malformed && !conversation.find("messages"))
      throw std::out_of_range("map::at");
    if (fault != Fault::malformed_internal) check(conversation);
    std::string text, last;
    for (const titan::Value& message : conversation.at("messages").as_list()) {
      const std::string &role = message.at("role").as_string(),
                        &content = message.at("content").as_string();
      if (fault == Fault::renders && role == "system") continue;
      if (fault == Fault::renders_order && role == "system")
        last = turn(role, content);
      else
        text += turn(role, content);
    }
    text += last;
    if (fault == Fault::generation_prompt && !adds_generation_prompt) text += "</conversation>";
    if (fault == Fault::generation_prompt_strips && adds_generation_prompt && !text.empty())
      text.pop_back();
    if (fault == Fault::deterministic && number_ > 0)
      text = "<date " + std::to_string(number_) + ">" + text;
    if (fault == Fault::threads) text = shared_.set_and_get(text);
    return adds_generation_prompt && fault != Fault::roles ? text + "<assistant>" : text;
  }

 private:
  static void check(const titan::Value& conversation) {
    const titan::Value& messages = conversation.at("messages");
    TITAN_CHECK(messages.is_list(), data, "messages must be a list");
    for (const titan::Value& message : messages.as_list()) {
      TITAN_CHECK(message.is_map(), data, "a message must be a map of role and content");
      TITAN_CHECK(message.at("role").is_string() && message.at("content").is_string(), data,
                  "role and content must be strings");
    }
  }
  static std::string turn(const std::string& role, std::string content) {
    if (fault == Fault::contents_kept)
      for (size_t at; (at = content.find('<')) != std::string::npos;)
        content.replace(at, 1, "&lt;");
    if (fault == Fault::roles && role == "assistant") return content;
    return "<" + role + ">" + content + "</end>\n";
  }

  static inline std::atomic<int> made_ = 0;
  int number_ = made_++;
  mutable wrong::SharedText shared_;
};

class Empty final : public titan::ChatTemplate {
 public:
  explicit Empty(titan::ChatTemplateContext) {}
  std::string render(const titan::Value&, bool) const override { return {}; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Marked<Fault::none>>("wrong/right", "Marks the roles.");
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Marked<Fault::renders>>("wrong/renders", "Leaves system messages out.");
  plugin.add<Marked<Fault::renders_order>>("wrong/renders.order",
                                           "Moves system messages to the end.");
  plugin.add<Marked<Fault::roles>>("wrong/roles", "Leaves answers unmarked.");
  plugin.add<Marked<Fault::generation_prompt>>("wrong/generation_prompt",
                                               "Marks the end of the conversation.");
  plugin.add<Marked<Fault::generation_prompt_strips>>("wrong/generation_prompt.strips",
                                                      "Strips the line end before a prompt.");
  plugin.add<Marked<Fault::deterministic>>("wrong/deterministic",
                                           "Gives another text in each object.");
  plugin.add<Marked<Fault::threads>>("wrong/threads", "Mixes up the texts of threads.");
  plugin.add<Marked<Fault::contents_kept>>("wrong/contents_kept", "Escapes markup.");
  plugin.add<Marked<Fault::malformed>>("wrong/malformed", "Throws an exception of its own.");
  plugin.add<Marked<Fault::malformed_internal>>("wrong/malformed.internal",
                                                "Takes a type for granted.");
}
