// The steps of a decoder. Used by Decoder only.
#pragma once

#include <memory>
#include <string>

#include "../common/pattern.h"
#include "decoder_step.h"

namespace titan::huggingface {

/// Concatenates the bytes of all tokens.
std::unique_ptr<DecoderStep> make_byte_level_decoder();
/// In each text, every match becomes `content`.
std::unique_ptr<DecoderStep> make_replace_decoder(std::unique_ptr<bpe::Pattern> pattern,
                                                  std::string content);
/// A run of `<0xHH>` becomes the characters of these bytes, or a U+FFFD for each byte.
std::unique_ptr<DecoderStep> make_byte_fallback_decoder();
/// All texts become one.
std::unique_ptr<DecoderStep> make_fuse_decoder();
/// Removes the character `content` up to `start` and `stop` times from the ends of each text.
std::unique_ptr<DecoderStep> make_strip_decoder(std::string content, size_t start, size_t stop);
/// `replacement` becomes a space; with `prepended` it is removed from the first text.
std::unique_ptr<DecoderStep> make_metaspace_decoder(std::string replacement, bool prepended);
/// `suffix` becomes a space; it is removed from the last text.
std::unique_ptr<DecoderStep> make_suffix_decoder(std::string suffix);

}  // namespace titan::huggingface
