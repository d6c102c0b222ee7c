// Checks, before anything starts, that a job has what data sets of conversations need. Used by
// train/assembly and its dry run.
#pragma once

#include <string>

#include <titan/chat_template.h>
#include <titan/dataset.h>
#include <titan/tokenizer.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// The kind of documents of one source.
struct ConversationNeeds {
  std::string source;
  bool has_conversations = false;
  bool has_chats = false;  ///< conversations that a template renders
  bool has_pairs = false;  ///< a document is a chosen answer and a rejected one
  /// Unknown: the source has no document, or its documents are tokens, which may be pairs.
  bool may_have_pairs = false;
};

/// Judges by the first document of `dataset`; later ones are checked when they are read.
ConversationNeeds needs_of(const Dataset& dataset, const std::string& source);

/// Throws a ConfigError that lists all missing settings: a chat template, a tokenizer that encodes
/// special tokens in a text, sequences of whole documents that do not attend to each other.
/// `chat_template`: null without one. `isolates_documents`: by [data] or by the model.
void require_for_conversations(const ConversationNeeds& needs, const Tokenizer& tokenizer,
                               const ChatTemplate* chat_template, bool isolates_documents,
                               const JobConfig& config);

/// Throws a ConfigError when the source holds preference pairs but the loss does not compare
/// answers: rejected ones would be learned. Also when the loss compares answers but the source
/// holds no pairs.
void require_for_loss(const ConversationNeeds& needs, bool compares_answers,
                      const JobConfig& config);

}  // namespace titan::core
