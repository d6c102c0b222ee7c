// The chat template and the tokenizer of a command, chosen by the keys that titan train takes,
// without a whole job. Used by job_parts.cpp; choose_chat_template by engine/trained_model.cpp.
#pragma once

#include <memory>
#include <optional>

#include <titan/job_parts.h>

#include "core/config/resolve.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Lets a job that names no chat template have the one of most models.
void choose_chat_template(JobSources& sources);

class ChosenChat final : public OpenedChat {
 public:
  /// Throws as resolve() and as the components do, and what is the matter with the tokenizer where
  /// ids are needed; warnings are logged.
  explicit ChosenChat(const ChatRequest& request);

  const ChatText& chat() const override { return *chat_; }

 private:
  ChosenChat(const JobSources& sources, bool needs_ids);

  Catalog catalog_;
  Registry registry_;
  JobConfig config_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null: no ids are needed
  std::optional<ChatText> chat_;
};

}  // namespace titan::core
