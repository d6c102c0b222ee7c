// Reads the BPE model of tokenizer.json, or of vocab.json with merges.txt. Used by tokenizer_json
// and tokenizer_folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../common/engine.h"
#include "json_view.h"
#include "vocabulary.h"

namespace titan::huggingface {

struct BpeOptions {
  bool is_byte_level = false;  ///< the vocabulary spells bytes in the byte-level alphabet
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

/// Two tokens that merge, in order of rank.
struct TextMerge {
  std::string left;
  std::string right;
};

/// Reads the options. Throws a data Error for unknown or unsupported ones.
BpeOptions read_bpe_options(const JsonView& model, bool is_byte_level);
/// Reads "a b" or ["a", "b"]; `places` receives the list index of each.
std::vector<TextMerge> read_merges(const JsonView& merges, std::vector<size_t>& places);

/// Throws a data Error, naming `vocab`, if text could get lost because a token is missing.
/// `fail_merge(i, what)` throws an Error that names the place of merge i.
bpe::Engine make_engine(const BpeOptions& options, const Vocabulary& vocabulary,
                        const std::vector<TextMerge>& merges, const JsonView& vocab,
                        const std::function<void(size_t, const std::string&)>& fail_merge);

}  // namespace titan::huggingface
