// Opens the chat template and the tokenizer that a command's configuration names, without a whole
// job. Used by job_parts.cpp and, for choose_chat_template, by engine/trained_model.cpp.
#pragma once

#include <memory>
#include <optional>

#include <titan/job_parts.h>

#include "core/config/resolve.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Adds the default chat template to a job that names none.
void choose_chat_template(JobSources& sources);

class ChosenChat final : public OpenedChat {
 public:
  /// Throws as resolve() and as the components do. If the request needs ids and there is no
  /// tokenizer, throws the reason. Warnings are logged.
  explicit ChosenChat(const ChatRequest& request);

  const ChatText& chat() const override { return *chat_; }

 private:
  ChosenChat(const JobSources& sources, bool needs_ids);

  Catalog catalog_;
  Registry registry_;
  JobConfig config_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null if the request needs no ids
  std::optional<ChatText> chat_;
};

}  // namespace titan::core
