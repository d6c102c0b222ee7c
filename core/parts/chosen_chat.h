// The chat template and the tokenizer that titan chat-template works with, chosen by the keys that
// titan train takes, without a whole job. Used by commands/chat_template.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/chat_text.h>
#include <titan/tokenizer.h>

#include "core/config/resolve.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Lets a job that names no chat template have the one of most models.
void choose_chat_template(JobSources& sources);

class ChosenChat {
 public:
  enum class Needs { text, ids };
  /// `arguments`: --job.config_file, --section.key. Of a whole job only [chat_template],
  /// [tokenizer], model.hf_assets_path and [plugins] count. Throws as resolve() and as the
  /// components do, and what is the matter with the tokenizer where ids are needed; warnings are
  /// logged.
  ChosenChat(const std::vector<std::string>& arguments, Needs needs);

  const ChatText& chat() const { return *chat_; }

 private:
  ChosenChat(const JobSources& sources, Needs needs);

  Catalog catalog_;
  Registry registry_;
  JobConfig config_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null: no ids are needed
  std::optional<ChatText> chat_;
};

}  // namespace titan::core
