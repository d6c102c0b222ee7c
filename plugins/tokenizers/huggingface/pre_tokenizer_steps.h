// The steps of a pre_tokenizer. Used by PreTokenizer; the decoder uses read_prepend_scheme().
#pragma once

#include <memory>
#include <string>

#include "../common/pattern.h"
#include "json_view.h"
#include "pre_tokenizer_step.h"

namespace titan::huggingface {

/// How the parts that a pattern matches, and the parts between, become pieces.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Whether Metaspace prepends its replacement to a piece.
enum class PrependScheme { always, first, never };

/// Reads prepend_scheme and the older add_prefix_space of a Metaspace component.
PrependScheme read_prepend_scheme(const JsonView& metaspace);

std::unique_ptr<PreTokenizerStep> make_split_step(std::unique_ptr<bpe::Pattern> pattern,
                                                  SplitBehavior behavior, bool invert);
/// ByteLevel's add_prefix_space.
std::unique_ptr<PreTokenizerStep> make_prefix_space_step();
/// Replaces each space by `replacement` and prepends it according to `scheme`; `split` cuts before
/// each.
std::unique_ptr<PreTokenizerStep> make_metaspace_step(std::string replacement, PrependScheme scheme,
                                                      bool split);
/// For a `step` after ByteLevel that only cuts text and drops parts: it runs on the characters of
/// the byte-level alphabet, and bytes are cut where these are cut, also inside characters of the
/// text.
std::unique_ptr<PreTokenizerStep> make_alphabet_step(std::unique_ptr<PreTokenizerStep> step);

/// `\w+|[^\w\s]+` as in Rust's regex crate.
std::unique_ptr<bpe::Pattern> make_word_or_sign_pattern();
/// Each white space character by itself.
std::unique_ptr<bpe::Pattern> make_white_space_pattern();
/// Each ASCII sign and each character of general category P by itself.
std::unique_ptr<bpe::Pattern> make_punctuation_pattern();

}  // namespace titan::huggingface
