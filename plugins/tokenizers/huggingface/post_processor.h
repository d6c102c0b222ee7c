// Reads from the post_processor of tokenizer.json the tokens that frame a text. Titan's loaders add
// BOS and EOS themselves, so only the ids of these tokens are used. Used by tokenizer_json.
// Supported: ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing, Sequence.
#pragma once

#include <cstdint>
#include <optional>

#include "json_view.h"
#include "vocabulary.h"

namespace titan::huggingface {

struct FrameTokens {
  std::optional<int32_t> bos;  ///< the only token before the text
  std::optional<int32_t> eos;  ///< the only token after the text
  bool begins = false;         ///< whether there are tokens before the text
};

/// `view`: the component, nullopt if it is null. Throws a data Error.
FrameTokens read_post_processor(const std::optional<JsonView>& view, const Vocabulary& vocabulary);

}  // namespace titan::huggingface
