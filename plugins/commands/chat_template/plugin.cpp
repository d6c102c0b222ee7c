// titan chat-template: the text that a model reads of conversations, and its ids.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/program/terminal.h>

#include "core/chat/chosen_chat.h"
#include "core/commands/command.h"
#include "core/commands/own_flags.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;

constexpr const char* kChatTemplateUsage =
    "usage: titan chat-template [--assets FOLDER] [--conversations FILE] [OPTION]...\n"
    "                           [--section.key VALUE]...\n"
    "\n"
    "  --assets FOLDER         holds chat_template.jinja or tokenizer_config.json; the same as\n"
    "                          --model.hf_assets_path\n"
    "  --conversations FILE    *.jsonl, one on each line: {\"messages\": [{\"role\": \"user\",\n"
    "                          \"content\": \"...\"}, ...], \"tools\": [...]}; without it they "
    "come\n"
    "                          from standard input\n"
    "  --generation-prompt     up to where the assistant begins to speak\n"
    "  --ids                   the tokens too\n"
    "  --job.config_file FILE, --section.key VALUE\n"
    "                          [chat_template], [tokenizer] and model.hf_assets_path, as titan\n"
    "                          train takes them: --chat_template.template_name tool_use\n"
    "\n"
    "Prints one object for each conversation: {\"text\": ..., \"ids\": [...]}, or {\"error\": "
    "...}\n"
    "where the template refuses it, which makes the exit code 1.\n";

Value rendered(const std::string& line, const ChatText& chat, bool adds_prompt, bool has_ids) {
  std::string text = chat.text(parse_json(line), adds_prompt);
  Value result = Value::map({{"text", text}});
  if (!has_ids) return result;
  Value ids = Value::list();
  for (const int32_t id : chat.ids(text)) ids.as_list().emplace_back(int64_t{id});
  result["ids"] = std::move(ids);
  return result;
}

}  // namespace

int run_chat_template(const std::vector<std::string>& words) {
  po::options_description own("titan chat-template");
  own.add_options()("help,h", "")("assets", po::value<std::string>(), "")(
      "conversations", po::value<std::string>(), "")("generation-prompt", "")("ids", "");
  OwnFlags flags = take_own_flags(words, own, "titan chat-template");
  if (flags.values.count("help")) {
    print(kChatTemplateUsage);
    return kExitDone;
  }
  if (flags.values.count("assets")) {
    flags.rest.push_back("--model.hf_assets_path");
    flags.rest.push_back(flags.values["assets"].as<std::string>());
  }
  const bool has_ids = flags.values.count("ids") > 0;
  const bool adds_prompt = flags.values.count("generation-prompt") > 0;
  const ChosenChat chosen(flags.rest, has_ids ? ChosenChat::Needs::ids : ChosenChat::Needs::text);

  std::ifstream file;
  if (flags.values.count("conversations")) {
    const std::string name = flags.values["conversations"].as<std::string>();
    file.open(name);
    TITAN_CHECK(file.is_open() && !std::filesystem::is_directory(name), io,
                "cannot open --conversations ", name);
  }
  std::istream& in = file.is_open() ? file : std::cin;
  int64_t num_refused = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Value result;
    try {
      result = rendered(line, chosen.chat(), adds_prompt, has_ids);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::data) throw;
      result = Value::map({{"error", e.message()}});
      ++num_refused;
    }
    print_json(to_json(result) + "\n");
  }
  if (num_refused == 0) return kExitDone;
  print_error(std::to_string(num_refused) +
              (num_refused == 1 ? " conversation was refused" : " conversations were refused"));
  return kExitRuntimeError;
}

}  // namespace titan::core
