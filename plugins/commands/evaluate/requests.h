// Converts the documents of tasks to requests in tokens. Used by titan evaluate and by validation.
// No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <titan/tokenizer.h>

#include "task.h"

namespace titan::evaluation {

/// Asks for the likelihood of the tokens `target` after `context`, which is not empty.
struct Request {
  size_t task = 0, document = 0;
  size_t continuation = 0;  ///< index in the document; windows of a rolling text share it
  std::vector<int32_t> context, target;  ///< together at most max_length + 1 tokens
};

struct TokenRules {
  bool adds_bos = true;    ///< before every text, if the tokenizer has a BOS
  int64_t max_length = 0;  ///< context length in tokens
};

/// Whether transformers' tokenizer of this folder adds BOS before a text: by post_processor of
/// tokenizer.json; without that file by add_bos_token of tokenizer_config.json; else true.
bool adds_bos(const std::filesystem::path& assets);

/// The requests of all documents in order. Ids equal those of lm-evaluation-harness. Blanks at the
/// end of the context move to the continuation. The ids of the continuation are those of the joint
/// text after as many ids as the context has. An empty context becomes BOS, else EOS. A request
/// that is too long loses its beginning. A rolling text is split into disjoint windows with as much
/// context as fits. Throws a ConfigError that lists every document without valid tokens.
std::vector<Request> make_requests(const std::vector<Task>& tasks, const Tokenizer& tokenizer,
                                   const TokenRules& rules);

}  // namespace titan::evaluation
