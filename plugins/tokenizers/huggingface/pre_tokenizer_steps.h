// The steps that a pre_tokenizer is made of. Used by PreTokenizer; of Metaspace the decoder reads
// the scheme too.
#pragma once

#include <memory>
#include <string>

#include "../common/pattern.h"
#include "json_view.h"
#include "pre_tokenizer_step.h"

namespace titan::huggingface {

/// What becomes of the parts that a pattern matches, and of the parts between.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// How Metaspace treats the begin of a piece.
enum class PrependScheme { always, first, never };

/// Reads prepend_scheme and the older add_prefix_space of a Metaspace component.
PrependScheme read_prepend_scheme(const JsonView& metaspace);

std::unique_ptr<PreTokenizerStep> make_split_step(std::unique_ptr<bpe::Pattern> pattern,
                                                  SplitBehavior behavior, bool invert);
/// ByteLevel's add_prefix_space.
std::unique_ptr<PreTokenizerStep> make_prefix_space_step();
/// Writes `replacement` for each space and, by the scheme, in front; `split` cuts before each.
std::unique_ptr<PreTokenizerStep> make_metaspace_step(std::string replacement, PrependScheme scheme,
                                                      bool split);
/// `step`, which only cuts text and leaves parts out, behind ByteLevel: bytes are cut where it cuts
/// the characters of the byte-level alphabet that spell them, inside characters of the text too.
std::unique_ptr<PreTokenizerStep> make_alphabet_step(std::unique_ptr<PreTokenizerStep> step);

/// `\w+|[^\w\s]+` as Rust's regex crate has it.
std::unique_ptr<bpe::Pattern> make_word_or_sign_pattern();
/// Each white space by itself.
std::unique_ptr<bpe::Pattern> make_white_space_pattern();
/// Each sign of ASCII and each character of a general category P by itself.
std::unique_ptr<bpe::Pattern> make_punctuation_pattern();

}  // namespace titan::huggingface
