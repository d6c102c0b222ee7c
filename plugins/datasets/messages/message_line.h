// Parses the conversations of one JSON line. Used by the dataset `messages`.
#pragma once

#include <string_view>

#include <titan/dataset.h>

#include "plugins/datasets/messages/messages_options.h"

namespace titan::datasets {

/// Parses `line`, a JSON object, into `document`, by its members:
/// - messages            [{"role", "content", ...}, ...]: a chat, as OpenAI and TRL have it
/// - conversations       [{"from", "value"}, ...]: a chat, as ShareGPT has it
/// - prompt, completion  two texts, or two lists of messages
/// - chosen, rejected, with or without prompt: the same as two conversations; without a prompt
///                       their common start is the prompt (TRL's extract_prompt)
/// "tools", "documents" and the members of "chat_template_kwargs" are passed to a chat's template
/// as in TRL; other members are ignored.
/// Throws a data Error with the reason and the expected form, without the file.
void read_line(std::string_view line, const MessagesOptions& options, Document& document);

}  // namespace titan::datasets
