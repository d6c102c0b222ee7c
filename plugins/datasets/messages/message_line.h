// The conversations of one JSON line. Used by the dataset `messages`.
#pragma once

#include <string_view>

#include <titan/dataset.h>

#include "plugins/datasets/messages/messages_options.h"

namespace titan::datasets {

/// Puts what the JSON object that is all of `line` holds into `document`, by its members:
/// - messages            [{"role", "content", ...}, ...]: a chat, as OpenAI and TRL have it
/// - conversations       [{"from", "value"}, ...]: a chat, as ShareGPT has it
/// - prompt, completion  two texts, or two lists of messages
/// - chosen, rejected, with or without prompt: the same as two conversations that begin alike;
///                       without a prompt it is what both begin with (TRL's extract_prompt)
/// Beside a chat, "tools", "documents" and the members of "chat_template_kwargs" go to its template
/// as TRL hands them on; other members are not looked at.
/// Throws a data Error that says what is wrong and what would be right, without naming the file.
void read_line(std::string_view line, const MessagesOptions& options, Document& document);

}  // namespace titan::datasets
