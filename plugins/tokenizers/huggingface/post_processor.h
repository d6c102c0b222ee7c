// The post_processor of tokenizer.json: tells which tokens frame a text. Titan's loaders put BOS
// and EOS themselves, so that it is only read for their names. ByteLevel, TemplateProcessing,
// RobertaProcessing, BertProcessing, Sequence.
#pragma once

#include <cstdint>
#include <optional>

#include "json_view.h"
#include "vocabulary.h"

namespace titan::huggingface {

struct FrameTokens {
  std::optional<int32_t> bos;  ///< the one token that stands before the text
  std::optional<int32_t> eos;  ///< the one that stands behind it
  bool begins = false;         ///< some token stands before the text
};

/// `view`: the component, or nothing when it is null. Throws a data Error.
FrameTokens read_post_processor(const std::optional<JsonView>& view, const Vocabulary& vocabulary);

}  // namespace titan::huggingface
