#include "core/data/conversation_needs.h"

#include <algorithm>

#include <titan/settings/diagnostics.h>
#include <titan/special_token_text.h>

#include "core/config/selection/default_plugins.h"
#include "core/config/sources/key_places.h"
#include "core/data/first_document.h"
#include "core/data/no_tokenizer.h"

namespace titan::core {
namespace {

/// The place of the first of these keys or sections that was written.
SourceRange place_of(const JobConfig& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const SourceRange where = config.places ? config.places->place(key) : SourceRange{})
      return where;
  return {};
}

}  // namespace

ConversationNeeds needs_of(const Dataset& dataset, const std::string& source) {
  ConversationNeeds needs = {.source = source};
  Document first;
  needs.may_have_pairs = !read_first(dataset, first) || first.is_tokenised;
  if (needs.may_have_pairs) return needs;
  needs.has_pairs = first.conversations.size() > 1;
  needs.has_conversations = !first.conversations.empty();
  needs.has_chats = std::any_of(first.conversations.begin(), first.conversations.end(),
                                [](const Conversation& one) { return !one.chat.is_null(); });
  return needs;
}

void require_for_conversations(const ConversationNeeds& needs, const Tokenizer& tokenizer,
                               const ChatTemplate* chat_template, bool isolates_documents,
                               const JobConfig& config) {
  if (!needs.has_conversations) return;
  Diagnostics wrong;
  const std::string holds =
      "data source '" + needs.source + "' holds " + (needs.has_chats ? "chats" : "conversations");
  if (needs.has_chats && !chat_template && config.chat_template.name.empty())
    wrong.error(place_of(config, {"chat_template", "training.dataset", "training"}),
                holds + ", but the job has no chat template; set chat_template.name = \"" +
                    default_plugins::kChatTemplate +
                    "\", which uses the template of model.hf_assets_path");
  if (needs.has_chats && !missing_tokenizer(tokenizer) &&
      !dynamic_cast<const SpecialTokenText*>(&tokenizer))
    wrong.error(place_of(config, {"tokenizer.name", "model.hf_assets_path"}),
                holds + ", but tokenizer '" + config.tokenizer.name +
                    "' does not read the special tokens that chat templates write");
  if (config.data.packing != Packing::best_fit)
    wrong.error(place_of(config, {"data.packing", "data", "training.dataset"}),
                holds +
                    ", which data.packing = \"concatenate\" would cut; set data.packing = "
                    "\"best_fit\"");
  if (!isolates_documents)
    wrong.error(place_of(config, {"data.isolate_documents", "data", "training.dataset"}),
                holds + ", which must not see each other; set data.isolate_documents = true");
  if (!wrong.can_start()) throw ConfigError(wrong);
}

void require_for_loss(const ConversationNeeds& needs, bool compares_answers,
                      const JobConfig& config) {
  if (needs.may_have_pairs || needs.has_pairs == compares_answers) return;
  const std::string source = "data source '" + needs.source + "'";
  const std::string loss =
      config.loss.name.empty() ? "the model's own loss" : "loss '" + config.loss.name + "'";
  Diagnostics wrong;
  wrong.error(
      place_of(config, {"loss.name", "training.dataset", "training"}),
      compares_answers
          ? loss + " compares a chosen answer with a rejected one, and " + source +
                " holds no such pairs; give it documents of prompt, chosen and rejected, or choose "
                "another loss"
          : source + " holds preferences, and " + loss +
                " does not compare answers: it would learn the rejected ones like the chosen ones; "
                "choose a loss of preferences (titan list loss), or data with one answer each");
  throw ConfigError(wrong);
}

}  // namespace titan::core
