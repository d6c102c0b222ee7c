// Reads the first document of a data set, by which the job is checked at the start. Used by
// conversation_needs and no_tokenizer.
#pragma once

#include <titan/dataset.h>

namespace titan::core {

/// False when there is no document.
bool read_first(const Dataset& dataset, Document& document);

}  // namespace titan::core
