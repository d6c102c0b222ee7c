// Tokenizes a data set into PREFIX.bin and PREFIX.idx, and resumes an interrupted run. Used by
// plugin.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include <titan/dataset.h>
#include <titan/tokenizer.h>
#include <titan/value.h>

#include "token_pipeline.h"

namespace titan::tokenising {

struct Tokenization {
  std::filesystem::path prefix;
  const Dataset* dataset = nullptr;
  const Tokenizer* tokenizer = nullptr;
  Framing framing;
  Value identity;          ///< must be equal to resume: a map of names, as messages show them
  bool overwrite = false;  ///< replace the output, and unfinished work with another identity
  PipelineOptions pipeline;
};

/// Progress. Counts are of the whole output.
struct TokenizationState {
  int64_t documents = 0, tokens = 0, text_bytes = 0, bin_bytes = 0;
  int64_t shard = 0;          ///< of a streamed data set
  int64_t old_documents = 0;  ///< done by earlier runs
  int64_t old_tokens = 0, old_text_bytes = 0, old_shard = 0;
  bool is_complete = false;  ///< the output has all documents
};

/// Runs to the end, or until `goes_on` returns false, which is called several times a second. The
/// next run then resumes. The output bytes do not depend on the number of workers or interruptions.
///
/// Throws a config Error when the output exists or unfinished work has another identity, the data
/// set's error for its first bad document, and io Errors of the output. After any error the work
/// done so far is kept.
TokenizationState tokenise(const Tokenization& request,
                           const std::function<bool(const TokenizationState&)>& goes_on);

}  // namespace titan::tokenising
