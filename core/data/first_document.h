// What a data set holds, by its first document: what the job needs for it is checked at the start.
#pragma once

#include <titan/dataset.h>

namespace titan::core {

/// False when there is no document.
bool read_first(const Dataset& dataset, Document& document);

}  // namespace titan::core
