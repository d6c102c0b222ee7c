#include "prompts.h"

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/value.h>

namespace titan::commands {
namespace {

/// Throws a data Error that names the problem of the line.
Prompt prompt_of_json(const std::string& line) {
  const Value object = parse_json(line);
  TITAN_CHECK(object.is_map(), data, "expected a JSON object");
  Prompt prompt;
  if (const Value* ids = object.find("prompt_ids")) {
    TITAN_CHECK(ids->is_list(), data, "\"prompt_ids\" must be a list of integers");
    prompt.ids.emplace();
    for (const Value& id : ids->as_list()) {
      TITAN_CHECK(id.is_integer() && id.as_integer() >= 0 && id.as_integer() < INT32_MAX, data,
                  "\"prompt_ids\" holds ", to_json(id), ", which is not a token id");
      prompt.ids->push_back(static_cast<int32_t>(id.as_integer()));
    }
    return prompt;
  }
  if (object.find("messages")) {
    prompt.conversation = object;
    return prompt;
  }
  const Value* text = object.find("prompt");
  TITAN_CHECK(text && text->is_string(), data,
              "expected \"prompt\" (a string), \"prompt_ids\" (a list) or \"messages\"");
  prompt.text = text->as_string();
  return prompt;
}

}  // namespace

std::vector<Prompt> read_prompts(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  const bool is_json = file.extension() == ".jsonl";
  std::vector<Prompt> prompts;
  std::string wrong;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const std::string place = file.string() + ":" + std::to_string(number);
    try {
      prompts.push_back(is_json ? prompt_of_json(line) : Prompt{.text = line});
      prompts.back().place = place;
    } catch (const Error& e) {
      wrong += "\n  " + place + ": " + e.message();
    }
  }
  TITAN_CHECK(wrong.empty(), data, "invalid lines in the file of prompts:", wrong);
  TITAN_CHECK(!prompts.empty(), data, file.string(), " holds no prompt");
  return prompts;
}

Value conversation_of(const std::string& text) {
  return Value::map(
      {{"messages", Value::list({Value::map({{"role", "user"}, {"content", text}})})}});
}

std::vector<std::vector<int32_t>> prompt_ids(const std::vector<Prompt>& prompts,
                                             const Tokenizer* tokenizer, const ChatText* chat,
                                             const PromptLimits& limits) {
  std::vector<std::vector<int32_t>> all;
  std::string wrong;
  for (const Prompt& prompt : prompts) {
    const auto refuse = [&](const std::string& why) {
      wrong += "\n  " + prompt.place + ": " + why;
    };
    std::vector<int32_t>& ids = all.emplace_back();
    if (prompt.ids) {
      ids = *prompt.ids;
    } else if (!tokenizer) {
      refuse(
          "text, but there is no tokenizer: set --model.hf_assets_path to its folder, or give "
          "\"prompt_ids\"");
      continue;
    } else if (prompt.conversation && !chat) {
      refuse("a conversation; add --chat to render it with the model's chat template");
      continue;
    } else if (chat) {
      try {
        ids = chat->ids(chat->text(
            prompt.conversation ? *prompt.conversation : conversation_of(prompt.text), true));
      } catch (const Error& e) {
        refuse(e.message());
        continue;
      }
    } else if (prompt.text.empty()) {
      refuse(
          "an empty prompt; to begin with BOS only, give {\"prompt_ids\": [ID]} in a file of "
          "--prompts");
      continue;
    } else {
      if (const auto bos = tokenizer->special_tokens().bos) ids.push_back(*bos);
      tokenizer->encode(prompt.text, ids);
    }
    const auto size = static_cast<int64_t>(ids.size());
    if (ids.empty()) refuse("an empty prompt");
    if (size + limits.max_new_tokens > limits.context)
      refuse("a prompt of " + std::to_string(size) + " tokens and --max-new-tokens " +
             std::to_string(limits.max_new_tokens) + " are more than the model's context of " +
             std::to_string(limits.context));
    for (const int32_t id : ids)
      if (id < 0 || id >= limits.vocab_size) {
        refuse("id " + std::to_string(id) + " is not below the model's vocabulary size " +
               std::to_string(limits.vocab_size));
        break;
      }
  }
  TITAN_CHECK(wrong.empty(), config, "invalid prompts:", wrong);
  return all;
}

}  // namespace titan::commands
