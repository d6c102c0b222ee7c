#include "core/data/no_tokenizer.h"

#include <limits>

#include <titan/framing.h>
#include <titan/log.h>

#include "core/data/first_document.h"

namespace titan::core {
namespace {

/// Ignores read errors; they are thrown when the data are read for use.
bool begins_with_text(const Dataset& dataset) {
  Document first;
  try {
    return read_first(dataset, first) && !first.is_tokenised && first.conversations.empty();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void NoTokenizer::encode(std::string_view, std::vector<int32_t>&) const {
  throw Error(reason_);
}

std::string NoTokenizer::decode(std::span<const int32_t>) const {
  throw Error(reason_);
}

int64_t NoTokenizer::vocab_size() const {
  return int64_t{std::numeric_limits<int32_t>::max()} + 1;
}

std::unique_ptr<Tokenizer> tokenizer_or_none(
    const std::function<std::unique_ptr<Tokenizer>()>& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    return std::make_unique<NoTokenizer>(error);
  }
}

const NoTokenizer* missing_tokenizer(const Tokenizer& tokenizer) {
  return dynamic_cast<const NoTokenizer*>(&tokenizer);
}

void warn_of_bare_documents(const Dataset& dataset, const Tokenizer& tokenizer,
                            const std::string& name, const std::string& folder) {
  const Framing framing = framing_of(tokenizer);
  if (framing.bos || framing.eos || missing_tokenizer(tokenizer) || !begins_with_text(dataset))
    return;
  log::warn("the tokenizer in '" + folder + "' has neither BOS nor EOS: nothing marks where a " +
            "document of data source '" + name +
            "' ends and the next begins; name bos_token or eos_token in its tokenizer_config.json");
}

void require_tokenizer_for(const Dataset& dataset, const Tokenizer& tokenizer,
                           const std::string& name) {
  const NoTokenizer* none = missing_tokenizer(tokenizer);
  if (!none) return;
  Document first;
  if (!read_first(dataset, first) || first.is_tokenised) return;
  throw Error(none->reason()).with_context("the data set '" + name + "' is text and needs it");
}

}  // namespace titan::core
