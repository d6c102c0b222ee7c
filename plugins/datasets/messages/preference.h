// Parses a line with a preferred and a rejected answer. Used by message_line.
#pragma once

#include <titan/dataset.h>
#include <titan/value.h>

namespace titan::datasets {

/// The two conversations of a line with "chosen" and "rejected", in this order; see message_line.h.
void read_preference(const Value& line, Document& document);

}  // namespace titan::datasets
