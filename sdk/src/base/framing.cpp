#include "core/data/framing.h"

#include <titan/error.h>
#include <titan/log.h>

#include "core/data/first_document.h"
#include "core/data/no_tokenizer.h"

namespace titan::core {
namespace {

/// What cannot be read is an error where it is read for use.
bool begins_with_text(const Dataset& dataset) {
  Document first;
  try {
    return read_first(dataset, first) && !first.is_tokenised && first.conversations.empty();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void warn_of_bare_documents(const Dataset& dataset, const Tokenizer& tokenizer,
                            const std::string& name, const std::string& folder) {
  const Framing framing = framing_of(tokenizer);
  if (framing.bos || framing.eos || as_none(tokenizer) || !begins_with_text(dataset)) return;
  log::warn("the tokenizer in '" + folder + "' has neither BOS nor EOS: nothing marks where a " +
            "document of data source '" + name +
            "' ends and the next begins; name bos_token or eos_token in its tokenizer_config.json");
}

void append_tokens(const Document& document, const Tokenizer& tokenizer, const Framing& framing,
                   std::vector<int32_t>& tokens) {
  TITAN_CHECK(
      document.conversations.empty(), data,
      "the document is a conversation, which is learned in parts; only a training run reads "
      "it");
  if (document.is_tokenised) {
    tokens.insert(tokens.end(), document.tokens.begin(), document.tokens.end());
    return;
  }
  if (framing.bos) tokens.push_back(*framing.bos);
  tokenizer.encode(document.text, tokens);
  if (framing.eos) tokens.push_back(*framing.eos);
}

}  // namespace titan::core
