// Tokenises a data set into PREFIX.bin and PREFIX.idx, and goes on where an interrupted run
// stopped. Used by commands/tokenize.cpp.
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
  Value identity;          ///< what must be the same to go on: a map of names, as messages use them
  bool overwrite = false;  ///< replace the result and unfinished work of another kind
  PipelineOptions pipeline;
};

/// How far it is. Counts are of the whole output.
struct TokenizationState {
  int64_t documents = 0, tokens = 0, text_bytes = 0, bin_bytes = 0;
  int64_t shard = 0;          ///< of a streamed data set
  int64_t old_documents = 0;  ///< that an earlier run has done
  int64_t old_tokens = 0, old_text_bytes = 0, old_shard = 0;
  bool is_complete = false;  ///< all of it is in the result
};

/// Runs to the end or until `goes_on`, which is called several times a second, says no; what is
/// done then stays for the next run. The same bytes come out whatever the number of workers and of
/// interruptions.
///
/// Throws: config Error when the result exists or unfinished work is of another kind; what reading
/// the data set throws, for its first bad document; io Errors of the output. Whatever is thrown,
/// what was done before it stays.
TokenizationState tokenise(const Tokenization& request,
                           const std::function<bool(const TokenizationState&)>& goes_on);

}  // namespace titan::tokenising
