// What a job needs for data sets of conversations, checked before anything starts. Used by
// train/assembly and its dry run.
#pragma once

#include <string>

#include <titan/chat_template.h>
#include <titan/dataset.h>
#include <titan/tokenizer.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// What one source holds.
struct ConversationNeeds {
  std::string source;
  bool has_conversations = false;
  bool has_chats = false;  ///< that a template renders
  bool has_pairs = false;  ///< a document is a chosen answer and a rejected one
  /// There is no document, or it is tokens, of which every second one may be a rejected answer.
  bool may_have_pairs = false;
};

/// By the first document of `dataset`; later ones are looked at when they come.
ConversationNeeds needs_of(const Dataset& dataset, const std::string& source);

/// Throws a ConfigError of all that is missing: a chat template, a tokenizer that reads special
/// tokens in a text, sequences of whole documents that do not see each other. `chat_template`: null
/// without one. `isolates_documents`: by [data] or by the model.
void require_for_conversations(const ConversationNeeds& needs, const Tokenizer& tokenizer,
                               const ChatTemplate* chat_template, bool isolates_documents,
                               const JobConfig& config);

/// Throws a ConfigError where the source holds preferences and the loss compares no answers, so
/// that rejected ones would be learned, or the loss compares answers and the source holds none.
void require_for_loss(const ConversationNeeds& needs, bool compares_answers,
                      const JobConfig& config);

}  // namespace titan::core
