// Reads the prompts of titan generate and converts them to token ids. Used by plugin.cpp.
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

/// One prompt: text, token ids from a file, or a conversation.
struct Prompt {
  std::string text;
  std::optional<std::vector<int32_t>> ids;
  std::optional<Value> conversation = {};  ///< {"messages": [...], ...}
  std::string place;                       ///< "--prompt", "prompts.jsonl:3"
};

/// Of a file. *.jsonl: one object per line, {"prompt": TEXT}, {"prompt_ids": [ID, ...]} or
/// {"messages": [...], ...}. Any other file: one prompt per line. Empty lines are skipped. Throws
/// an io Error when the file cannot be read, a data Error that lists every invalid line.
std::vector<Prompt> read_prompts(const std::filesystem::path& file);

/// The model's limits.
struct PromptLimits {
  int64_t context = 0;         ///< tokens of a whole sequence
  int64_t max_new_tokens = 0;  ///< maximum number of tokens after the prompt
  int64_t vocab_size = 0;
};

/// A conversation of one user message.
Value conversation_of(const std::string& text);

/// The ids of each prompt. Text gets the tokenizer's BOS, if there is one. With `chat` a text is a
/// user message, and conversations end with the generation prompt. Throws a config Error that lists
/// every prompt that is empty, too long, rejected by the chat template, contains an invalid id, is
/// text without a tokenizer, or is a conversation without `chat`. `tokenizer`, `chat`: may be null.
std::vector<std::vector<int32_t>> prompt_ids(const std::vector<Prompt>& prompts,
                                             const Tokenizer* tokenizer, const ChatText* chat,
                                             const PromptLimits& limits);

}  // namespace titan::commands
