// titan chat-template: prints conversations as text and token ids, as a model reads them.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/job_parts.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

namespace titan::commands {
namespace {

struct ChatTemplateOptions {
  std::filesystem::path assets, conversations;
  bool generation_prompt = false, ids = false;
};

Value rendered(const std::string& line, const ChatText& chat, bool adds_prompt, bool has_ids) {
  std::string text = chat.text(parse_json(line), adds_prompt);
  Value result = Value::map({{"text", text}});
  if (!has_ids) return result;
  Value ids = Value::list();
  for (const int32_t id : chat.ids(text)) ids.as_list().emplace_back(int64_t{id});
  result["ids"] = std::move(ids);
  return result;
}

class ShowChat final : public Command {
 public:
  static constexpr CommandWords kWords{.most = SIZE_MAX, .takes_job = true};

  ShowChat(const ChatTemplateOptions& options, CommandContext context)
      : options_(options), context_(std::move(context)) {}

  int run() override {
    std::vector<std::string> job = context_.words;
    if (!options_.assets.empty())
      job.insert(job.end(), {"--model.hf_assets_path", options_.assets.string()});
    const auto opened = context_.parts->open_chat({.job = job, .needs_ids = options_.ids});

    std::ifstream file;
    if (const std::filesystem::path& path = options_.conversations; !path.empty()) {
      file.open(path);
      TITAN_CHECK(file.is_open() && !std::filesystem::is_directory(path), io,
                  "cannot open --conversations ", path.string());
    }
    const int64_t num_refused = show(file.is_open() ? file : std::cin, opened->chat());
    if (num_refused == 0) return kExitDone;
    print_error(std::to_string(num_refused) +
                (num_refused == 1 ? " conversation was rejected" : " conversations were rejected"));
    return kExitRuntimeError;
  }

 private:
  /// Returns the number of conversations that the template rejects.
  int64_t show(std::istream& in, const ChatText& chat) const {
    int64_t num_refused = 0;
    for (std::string line; std::getline(in, line);) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      Value result;
      try {
        result = rendered(line, chat, options_.generation_prompt, options_.ids);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::data) throw;
        result = Value::map({{"error", e.message()}});
        ++num_refused;
      }
      print_json(to_json(result) + "\n");
    }
    return num_refused;
  }

  ChatTemplateOptions options_;
  CommandContext context_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using Options = titan::commands::ChatTemplateOptions;
  plugin.add<titan::commands::ShowChat>("chat-template", "render conversations as text and tokens")
      .option("assets", &Options::assets,
              "folder that holds chat_template.jinja or tokenizer_config.json; the same as "
              "--model.hf_assets_path")
      .option(
          "conversations", &Options::conversations,
          "*.jsonl, one per line: {\"messages\": [{\"role\": \"user\", \"content\": "
          "\"...\"}, ...], \"tools\": [...]}; default: standard input. Prints an "
          "object per conversation: {\"text\": ..., \"ids\": [...]}, or {\"error\": ...} if the "
          "template rejects it; the exit code is then 1")
      .option("generation_prompt", &Options::generation_prompt,
              "end with the generation prompt, where the assistant's answer begins")
      .option("ids", &Options::ids, "print token ids too");
}
