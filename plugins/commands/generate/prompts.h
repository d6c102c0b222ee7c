// What titan generate is asked to go on with, as token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/chat_text.h>
#include <titan/tokenizer.h>
#include <titan/value.h>

namespace titan::commands {

/// One prompt: text, or ids where a file gives these, or a conversation.
struct Prompt {
  std::string text;
  std::optional<std::vector<int32_t>> ids;
  std::optional<Value> conversation = {};  ///< {"messages": [...], ...}
  std::string place;                       ///< "--prompt", "prompts.jsonl:3"
};

/// Of a file: *.jsonl has an object a line, {"prompt": TEXT}, {"prompt_ids": [ID, ...]} or
/// {"messages": [...], ...}; any other file is a prompt a line; empty lines are passed over. Throws
/// an io Error when it cannot be read, a data Error that names every line that is none of these.
std::vector<Prompt> read_prompts(const std::filesystem::path& file);

/// How long a sequence may get, and which ids there are.
struct PromptLimits {
  int64_t context = 0;         ///< tokens of a whole sequence
  int64_t max_new_tokens = 0;  ///< of it that come after the prompt
  int64_t vocab_size = 0;
};

/// A conversation of what a user says.
Value conversation_of(const std::string& text);

/// Each prompt's ids; text gets the tokenizer's BOS in front, where it has one. With `chat` a text
/// is what a user says, and conversations end where the assistant begins to speak. Throws a config
/// Error that names every prompt that is empty, too long, text without a tokenizer, refused by the
/// chat template, a conversation without one, or holds an id that is none. `tokenizer`, `chat`: may
/// be null.
std::vector<std::vector<int32_t>> prompt_ids(const std::vector<Prompt>& prompts,
                                             const Tokenizer* tokenizer, const ChatText* chat,
                                             const PromptLimits& limits);

}  // namespace titan::commands
