// A task's documents as tokens that a model can be asked about. Used by titan evaluate and by
// validation. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <titan/tokenizer.h>

#include "task.h"

namespace titan::evaluation {

/// How likely are `continuation`'s tokens behind `context`, which is not empty?
struct Request {
  size_t task = 0, document = 0;
  size_t continuation = 0;  ///< of the document; several windows of a rolling text are one
  std::vector<int32_t> context, target;  ///< together at most max_length + 1 tokens
};

struct TokenRules {
  bool adds_bos = true;    ///< in front of every text, where the tokenizer has one
  int64_t max_length = 0;  ///< tokens that the model sees at once
};

/// Whether transformers' tokenizer of this folder puts BOS in front of a text: what tokenizer.json
/// (post_processor) says; without that file what tokenizer_config.json (add_bos_token) says, else
/// yes.
bool adds_bos(const std::filesystem::path& assets);

/// The requests of all documents in order. Ids are those of lm-evaluation-harness: blanks at the
/// context's end belong to the continuation, whose ids are those of both behind the number of the
/// context's; an empty context is BOS, else EOS; what is too long loses its beginning; a rolling
/// text is cut into disjoint windows with as much context as fits. Throws a ConfigError that names
/// every document without such tokens.
std::vector<Request> make_requests(const std::vector<Task>& tasks, const Tokenizer& tokenizer,
                                   const TokenRules& rules);

}  // namespace titan::evaluation
